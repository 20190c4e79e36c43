/* measure.c - timers of the slow path, only for `npm run bench -- sample` (measure.h).
 *
 * TIDEMARK_MEASURE=FILE names the file that is written when the program ends. With TIDEMARK_MEASURE_BY=parts
 * the counter is read at every change of part, otherwise only at both ends, because reading it takes time
 * itself. The kernel's counts for the thread are read outside the measured time.
 *
 *   file       uint64 ns, ticks of the whole program; ticks of one reading; number of records
 *              records: uint32 what, page faults, context switches, ticks of parts [TM_PART_COUNT] (without parts: all
 *              ticks are those of ENTRY)
 */
#include "core/measure.h"

#ifdef TM_MEASURE
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "core/system.h"

#define RECORDS 200000u

static struct record {
    uint32_t what, faults, switches;
    uint32_t ticks[TM_PART_COUNT];
} records[RECORDS];

static struct {
    uint64_t used;
    uint64_t began_ns, began_ticks;
    uint64_t since;
    struct rusage usage; /* when it began or continued */
    uint32_t faults, switches;
    uint64_t ticks[TM_PART_COUNT];
    enum tm_part part;
    int by_parts;
} measure;

__attribute__((constructor(102))) static void begin(void)
{
    const char *by = getenv("TIDEMARK_MEASURE_BY");
    memset(records, 1, sizeof records); /* touched now, so that it is not touched while measuring */
    measure.by_parts = by && strcmp(by, "parts") == 0;
    measure.began_ns = tm_now_ns();
    measure.began_ticks = tm_ticks();
}

static void count_kernel(void)
{
    struct rusage now, *before = &measure.usage;
    getrusage(RUSAGE_THREAD, &now);
    measure.faults += (uint32_t)(now.ru_minflt + now.ru_majflt - before->ru_minflt - before->ru_majflt);
    measure.switches += (uint32_t)(now.ru_nivcsw + now.ru_nvcsw - before->ru_nivcsw - before->ru_nvcsw);
}

enum tm_part tm_part(enum tm_part part)
{
    enum tm_part before = measure.part;
    if (part == before || (before == TM_PART_OUTSIDE && part != TM_PART_ENTRY))
        return before; /* parts of something else: an opening, or a check of the clock */
    int is_border = before == TM_PART_OUTSIDE || part == TM_PART_OUTSIDE;
    if (before == TM_PART_OUTSIDE)
        getrusage(RUSAGE_THREAD, &measure.usage);
    if (measure.by_parts || is_border) {
        uint64_t now = tm_ticks();
        measure.ticks[measure.by_parts ? before : TM_PART_ENTRY] += before == TM_PART_OUTSIDE ? 0 : now - measure.since;
        measure.since = now;
    }
    if (part == TM_PART_OUTSIDE)
        count_kernel();
    measure.part = part;
    return before;
}

void tm_measured(enum tm_measured what)
{
    tm_part(TM_PART_OUTSIDE);
    if (what != TM_MEASURED_NOTHING && measure.used < RECORDS) {
        struct record *record = &records[measure.used++];
        record->what = what;
        record->faults = measure.faults;
        record->switches = measure.switches;
        for (int i = 0; i < TM_PART_COUNT; i++)
            record->ticks[i] = (uint32_t)measure.ticks[i];
    }
    measure.faults = measure.switches = 0;
    memset(measure.ticks, 0, sizeof measure.ticks);
}

void tm_measure_write(void)
{
    const char *path = getenv("TIDEMARK_MEASURE");
    int file = path ? (int)open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1;
    if (file < 0)
        return;
    uint64_t head[4] = {tm_now_ns() - measure.began_ns, tm_ticks() - measure.began_ticks, 0, measure.used};
    uint64_t before = tm_ticks();
    for (int i = 0; i < 1000; i++)
        tm_part(i % 2 ? TM_PART_ENTRY : TM_PART_STACK);
    head[2] = (tm_ticks() - before) / 1000;
    if (write(file, head, sizeof head) == (ssize_t)sizeof head)
        (void)!write(file, records, measure.used * sizeof records[0]);
    close(file);
}
#endif
