#include "guard.h"
#include "segment.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

static uint64_t page_up(uint64_t bytes) {
    return (bytes + TM_PAGE - 1) / TM_PAGE * TM_PAGE;
}

static bool write_all(int fd, const void *data, size_t length, uint64_t offset) {
    const char *bytes = data;
    while (length) {
        ssize_t wrote = pwrite(fd, bytes, length, (off_t)offset);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0) {
            if (wrote == 0)
                errno = ENOSPC;
            return false;
        }
        bytes += wrote, offset += (uint64_t)wrote, length -= (size_t)wrote;
    }
    return true;
}

/* `ulimit -f` limits a sparse file's length, even in memory. The limits are meant for the program and are
 * restored before it starts. Anyone may raise them up to the hard limit; beyond it, only with CAP_SYS_RESOURCE.
 * Returns the limits in effect in between. */
static rlim_t raise_file_size_limit(struct rlimit *before, bool beyond_hard) {
    if (getrlimit(RLIMIT_FSIZE, before) != 0)
        return RLIM_INFINITY;
    struct rlimit none = {.rlim_cur = RLIM_INFINITY, .rlim_max = RLIM_INFINITY};
    if (beyond_hard && setrlimit(RLIMIT_FSIZE, &none) == 0)
        return RLIM_INFINITY;
    struct rlimit raised = {.rlim_cur = before->rlim_max, .rlim_max = before->rlim_max};
    setrlimit(RLIMIT_FSIZE, &raised);
    return before->rlim_max;
}

/* As it was created: a faulty program may have overwritten the pool's contents. */
static struct tm_pool_header made_header;

static int fill(int fd, uint32_t slots, uint64_t offset, uint64_t period, uint32_t options) {
    struct tm_pool_header header = {
        .magic = TM_POOL_MAGIC,
        .version = TM_SEGMENT_VERSION,
        .slot_count = slots,
        .slots_offset = offset,
        .slot_stride = TM_SLOT_STRIDE,
        .period_bytes = period,
        .options = options,
        .keeper_pid = (uint32_t)getpid(),
        .keeper_fd = (uint32_t)fd,
    };
    if (getrandom(&header.run_id, sizeof header.run_id, 0) != sizeof header.run_id)
        return -1;
    if (ftruncate(fd, (off_t)(offset + slots * TM_SLOT_STRIDE)) != 0)
        return -1;
    if (!write_all(fd, &header, sizeof header, 0))
        return -1;
    made_header = header;
    return fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
}

int pool_create(uint32_t slots, uint64_t period, uint32_t options) {
    int fd = descriptor_aside(memfd_create("tidemark-pool", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (fd < 0)
        return -1;
    struct rlimit before;
    rlim_t most = raise_file_size_limit(&before, true);
    uint64_t offset = page_up(TM_PAGE + slots * sizeof(struct tm_pool_slot));
    if (most != RLIM_INFINITY && offset + slots * TM_SLOT_STRIDE > most)
        slots = most > offset ? (uint32_t)((most - offset) / TM_SLOT_STRIDE) : 0;
    int made = -1;
    if (slots == 0)
        errno = EFBIG;
    else
        made = fill(fd, slots, offset, period, options);
    int why = errno;
    setrlimit(RLIMIT_FSIZE, &before);
    if (made == 0)
        return fd;
    close(fd);
    errno = why;
    return -1;
}

/* Copies the parts of [from, from + length) that hold data; unwritten parts stay holes. */
static bool copy_data(int in, uint64_t from, int out, uint64_t to, uint64_t length) {
    static char block[1 << 16];
    uint64_t end = from + length, at = from;
    while (at < end) {
        off_t data = lseek(in, (off_t)at, SEEK_DATA);
        if (data < 0)
            return errno == ENXIO; /* only a hole up to the end */
        if ((uint64_t)data >= end)
            return true;
        off_t hole = lseek(in, data, SEEK_HOLE);
        if (hole < 0)
            return false;
        uint64_t stop = (uint64_t)hole < end ? (uint64_t)hole : end;
        for (at = (uint64_t)data; at < stop;) {
            size_t part = stop - at < sizeof block ? (size_t)(stop - at) : sizeof block;
            ssize_t got = pread(in, block, part, (off_t)at);
            if (got <= 0 || !write_all(out, block, (size_t)got, to + (at - from)))
                return false;
            at += (uint64_t)got;
        }
    }
    return true;
}

/* The saved pool is again a pool, with only the used slots, moved together: header (slot_count = used), slot
 * table, segments. */
static bool save(int pool, int out) {
    struct tm_pool_header now, header = made_header;
    if (pread(pool, &now, sizeof now, 0) != sizeof now)
        return false;
    header.claims = now.claims;
    header.unserved = now.unserved;
    header.unserved_reason = now.unserved_reason;
    size_t table = header.slot_count * sizeof(struct tm_pool_slot);
    struct tm_pool_slot *slots = malloc(table ? table : 1);
    if (!slots)
        return false;
    bool good = pread(pool, slots, table, TM_PAGE) == (ssize_t)table;
    uint32_t used = 0;
    for (uint32_t i = 0; good && i < header.slot_count; i++)
        used += slots[i].state == TM_SLOT_CLAIMED;
    uint64_t offset = page_up(TM_PAGE + (used + 1) * sizeof(struct tm_pool_slot));
    uint32_t next = 0;
    for (uint32_t i = 0; good && i < header.slot_count; i++) {
        if (slots[i].state != TM_SLOT_CLAIMED || next == used)
            continue;
        good = copy_data(pool, header.slots_offset + i * header.slot_stride, out,
                         offset + next * header.slot_stride, header.slot_stride) &&
               write_all(out, &slots[i], sizeof slots[i], TM_PAGE + next * sizeof slots[i]);
        next++;
    }
    free(slots);
    header.slot_count = used ? used : 1; /* readers refuse an empty pool */
    header.slots_offset = offset;
    return good && ftruncate(out, (off_t)(offset + header.slot_count * header.slot_stride)) == 0 &&
           write_all(out, &header, sizeof header, 0);
}

int pool_save(int pool, const char *path) {
    char *draft = NULL;
    if (asprintf(&draft, "%s.%d", path, (int)getpid()) < 0)
        return ENOMEM;
    struct rlimit before;
    raise_file_size_limit(&before, false); /* a file that belongs to the user, who set the hard limit */
    int why = 0;
    int out = open(draft, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (out < 0) {
        why = errno;
    } else {
        errno = EIO;
        if (!save(pool, out) || rename(draft, path) != 0) {
            why = errno;
            unlink(draft);
        }
        close(out);
    }
    setrlimit(RLIMIT_FSIZE, &before);
    free(draft);
    return why;
}
