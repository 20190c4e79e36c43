/* protection.c - may a page be written now?
 *
 * Only the kernel knows: an object's program headers say what the loader means to do to its
 * RELRO part, not whether it has got there yet.
 *
 *   Linux 5.14 on   madvise(MADV_POPULATE_WRITE) fails with EINVAL where writing is not allowed; on a
 *                   part that the loader has written already it changes nothing
 *   before          /proc/self/maps, read once a walk under the loader's list lock: no object comes or
 *                   goes meanwhile, and a page that was read-only once stays so
 *
 *   7f0a5c000000-7f0a5c021000 rw-p 00000000 00:00 0        start-end in hexadecimal, permissions
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hooks.h"
#include "slots.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

/* The kernel's usual bound is 65,530; memory is touched only as far as it is used. */
#define MOST_RANGES (1u << 20)

struct range {
    uintptr_t start, end;
};

static struct range *ranges; /* what may be written, sorted: the kernel lists it so */
static size_t range_count;

struct reader {
    int descriptor;
    size_t at, length;
    char text[4096];
};

/* The next byte; -1 at the end. */
static int next(struct reader *reader)
{
    if (reader->at == reader->length) {
        ssize_t got;
        do
            got = read(reader->descriptor, reader->text, sizeof reader->text);
        while (got < 0 && errno == EINTR);
        if (got <= 0)
            return -1;
        reader->at = 0;
        reader->length = (size_t)got;
    }
    return (unsigned char)reader->text[reader->at++];
}

/* A hexadecimal number up to the byte `end`; 0: the line is not as it should be. */
static int read_address(struct reader *reader, int end, uintptr_t *value)
{
    *value = 0;
    for (;;) {
        int c = next(reader);
        if (c == end)
            return 1;
        if (c >= '0' && c <= '9')
            *value = *value << 4 | (uintptr_t)(c - '0');
        else if (c >= 'a' && c <= 'f')
            *value = *value << 4 | (uintptr_t)(c - 'a' + 10);
        else
            return 0;
    }
}

static void keep(uintptr_t start, uintptr_t end)
{
    if (range_count && ranges[range_count - 1].end == start)
        ranges[range_count - 1].end = end;
    else
        ranges[range_count++] = (struct range){start, end};
}

static int read_lines(struct reader *reader)
{
    while (range_count < MOST_RANGES) {
        uintptr_t start, end;
        if (!read_address(reader, '-', &start))
            return 0; /* the end */
        if (!read_address(reader, ' ', &end))
            return EIO;
        next(reader); /* r */
        if (next(reader) == 'w')
            keep(start, end);
        for (int c = next(reader); c != '\n'; c = next(reader))
            if (c < 0)
                return 0;
    }
    return E2BIG;
}

static int read_maps(void)
{
    struct reader reader = {.descriptor = open("/proc/self/maps", O_RDONLY | O_CLOEXEC)};
    if (reader.descriptor < 0)
        return errno;
    void *memory = tm_real_mmap(NULL, MOST_RANGES * sizeof *ranges, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    int why = memory == MAP_FAILED ? errno : 0;
    if (!why) {
        ranges = memory;
        range_count = 0;
        why = read_lines(&reader);
        if (!why && !range_count)
            why = EIO;
    }
    close(reader.descriptor);
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
