/* protection.c - whether a page may be written now.
 *
 * Only the kernel knows: an object's program headers show what the loader will do with its RELRO part, not
 * whether it has done so yet.
 *
 *   Linux 5.14 on   madvise(MADV_POPULATE_WRITE) fails with EINVAL where writing is not allowed; it does
 *                   not change a part that the loader has already written
 *   before          /proc/self/maps, read once per walk under the loader's list lock: no object is loaded
 *                   or unloaded in between, and a page that was read-only once stays read-only
 */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/system.h"
#include "process/maps.h"
#include "segment.h"
#include "slots/slots.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

/* The kernel's usual limit is 65,530; memory is touched only as far as it is used. */
#define MOST_RANGES (1u << 20)

struct range {
    uintptr_t start, end;
};

static struct range *ranges; /* writable ranges, sorted as the kernel lists them */
static size_t range_count;

static void keep(uintptr_t start, uintptr_t end)
{
    if (range_count && ranges[range_count - 1].end == start)
        ranges[range_count - 1].end = end;
    else
        ranges[range_count++] = (struct range){start, end};
}

static int read_lines(struct tm_maps *maps)
{
    struct tm_mapping mapping;
    while (range_count < MOST_RANGES) {
        int found = tm_maps_next(maps, &mapping);
        if (found <= 0)
            return -found;
        if (mapping.writable)
            keep(mapping.start, mapping.end);
    }
    return E2BIG;
}

static int read_maps(void)
{
    struct tm_maps maps;
    int why = tm_maps_open(&maps);
    if (why)
        return why;
    void *memory = tm_real_mmap(NULL, MOST_RANGES * sizeof *ranges, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    why = memory == MAP_FAILED ? errno : 0;
    if (!why) {
        ranges = memory;
        range_count = 0;
        why = read_lines(&maps);
        if (!why && !range_count)
            why = EIO;
    }
    close(maps.descriptor);
    if (why)
        tm_protection_end();
    return why;
}

void tm_protection_end(void)
{
    if (ranges)
        tm_real_munmap(ranges, MOST_RANGES * sizeof *ranges);
    ranges = NULL;
}

static int is_listed(uintptr_t page)
{
    size_t low = 0, high = range_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (ranges[middle].end <= page)
            low = middle + 1;
        else
            high = middle;
    }
    return low < range_count && ranges[low].start <= page;
}

static int can_ask_kernel(void)
{
    static char __attribute__((aligned(TM_PAGE))) probe[TM_PAGE];
    static int answer = -1;
    if (answer < 0)
        answer = madvise(probe, sizeof probe, MADV_POPULATE_WRITE) == 0;
    return answer;
}

int tm_is_writable(uintptr_t page)
{
    if (can_ask_kernel()) {
        if (madvise((void *)page, TM_PAGE, MADV_POPULATE_WRITE) == 0)
            return 1;
        return errno == EINVAL ? 0 : -errno;
    }
    int why = ranges ? 0 : read_maps();
    return why ? -why : is_listed(page);
}
