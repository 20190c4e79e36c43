/* pool.c - the memory that outlives this process: opens or creates it, and claims a slot.
 *
 * A pool comes from the recorder's guard (TIDEMARK=pool=/proc/PID/fd/N), or the process
 * creates its own: a file in the given directory, else a memfd. A store into the
 * segment must never raise SIGBUS, so every byte is reserved before its mapping is used.
 * Nothing here may raise SIGXFSZ, so the file-size limit is read before a file grows.
 *
 * With a keeper, no descriptor stays open in the program; children open the pool through
 * the keeper again. Without one (own memfd), the descriptor stays open at a high number, close-on-exec.
 * Its inode is checked before every use, because the program may have closed it.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/state.h"
#include "core/system.h"
#include "segment/pool.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif
#ifndef MADV_DONTFORK
#define MADV_DONTFORK 10
#endif
#define MEMFD_CLOEXEC 1u
#define MEMFD_SEALS 2u
#define HIGH_DESCRIPTOR 1000
/* Slots of a pool that an attached process creates for itself and its forked children. */
#define FAMILY_SLOTS 128u

static uint64_t page_up(uint64_t bytes)
{
    return (bytes + TM_PAGE - 1) / TM_PAGE * TM_PAGE;
}

/* Only since 2.33 is fstat() a symbol of the C library. */
static int status_of(int descriptor, struct stat *status)
{
    return (int)syscall(SYS_fstat, descriptor, status);
}

static int is_pool(int descriptor, const struct tm_pool_place *pool)
{
    struct stat status;
    return status_of(descriptor, &status) == 0 && status.st_dev == pool->device && status.st_ino == pool->inode;
}

/* A descriptor of the pool for short use; `*borrowed`: it must not be closed. */
static int pool_open(int *borrowed)
{
    const struct tm_pool_place *pool = &tm_settings.pool;
    *borrowed = 0;
    if (pool->kept_descriptor >= 0 && is_pool(pool->kept_descriptor, pool)) {
        *borrowed = 1;
        return pool->kept_descriptor;
    }
    if (!pool->path[0]) {
        errno = EBADF;
        return -1;
    }
    int descriptor = open(pool->path, O_RDWR | O_CLOEXEC);
    if (descriptor >= 0 && !is_pool(descriptor, pool)) {
        close(descriptor);
        errno = ESTALE;
        return -1;
    }
    return descriptor;
}

/* The head is mapped where an earlier pool's head was: a thread may still hold that address. */
static int map_head(int descriptor, uint64_t bytes)
{
    int again = tm_settings.pool.head && bytes <= tm_settings.pool.head_bytes;
    void *head = tm_real_mmap(again ? tm_settings.pool.head : NULL, bytes, PROT_READ | PROT_WRITE,
                              MAP_SHARED | (again ? MAP_FIXED : 0), descriptor, 0);
    if (head == MAP_FAILED)
        return errno;
    if (!again) {
        __atomic_store_n(&tm_settings.pool.head, head, __ATOMIC_RELAXED);
        tm_settings.pool.head_bytes = bytes;
    }
    return 0;
}

static void remember(int descriptor, const char *path)
{
    struct stat status;
    struct tm_pool_place *pool = &tm_settings.pool;
    pool->kept_descriptor = -1;
    if (status_of(descriptor, &status) == 0) {
        pool->device = status.st_dev;
        pool->inode = status.st_ino;
    }
    pool->path[0] = 0;
    if (path && strlen(path) < sizeof pool->path)
        strcpy(pool->path, path);
}

/* Nothing in the header is trusted before it is checked: the path may name any file. */
static int check_head(const struct tm_pool_header *head, uint64_t file_bytes)
{
    if (head->magic != TM_POOL_MAGIC)
        return EINVAL;
    if (head->version != TM_SEGMENT_VERSION)
        return EPROTO;
    uint64_t table_end = TM_PAGE + (uint64_t)head->slot_count * sizeof(struct tm_pool_slot);
    if (head->slot_count == 0 || head->slot_count > 1u << 20 || head->slots_offset % TM_PAGE ||
        head->slots_offset < table_end || head->slot_stride < TM_SLOT_STRIDE || head->slot_stride % TM_PAGE ||
        head->slot_stride > 1ull << 32 || head->slots_offset > 1ull << 32 ||
        head->slots_offset + head->slot_count * head->slot_stride > file_bytes)
        return EINVAL;
    return 0;
}

int tm_pool_open_given(const char *path)
{
    int descriptor = open(path, O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (descriptor < 0)
        return errno;
    struct stat status;
    struct tm_pool_header head;
    int why = 0;
    if (status_of(descriptor, &status) != 0)
        why = errno;
    else if (!S_ISREG(status.st_mode) || pread(descriptor, &head, sizeof head, 0) != (ssize_t)sizeof head)
        why = EINVAL;
    else
        why = check_head(&head, (uint64_t)status.st_size);
    if (!why)
        why = map_head(descriptor, page_up(TM_PAGE + head.slot_count * sizeof(struct tm_pool_slot)));
    if (!why)
        remember(descriptor, path);
    close(descriptor);
    return why;
}

/* Reserves the bytes [offset, offset + bytes) of a file; 0 or an errno. */
static int allocate(int descriptor, uint64_t offset, uint64_t bytes)
{
    int result;
    do
        result = fallocate(descriptor, 0, (off_t)offset, (off_t)bytes);
    while (result != 0 && errno == EINTR);
    if (result == 0 || errno != EOPNOTSUPP)
        return result == 0 ? 0 : errno;
    static const char zeros[TM_PAGE];
    for (uint64_t done = 0; done < bytes; done += sizeof zeros) { /* the file is sparse: zeros either way */
        ssize_t wrote = pwrite(descriptor, zeros, sizeof zeros, (off_t)(offset + done));
        if (wrote != (ssize_t)sizeof zeros)
            return wrote < 0 ? errno : ENOSPC;
    }
    return 0;
}

static int make_file(char *path, size_t capacity)
{
    path[0] = 0;
    if (tm_settings.directory[0]) {
        tm_format(path, capacity, "%s/tidemark-%u.pool", tm_settings.directory, tm_own_pid());
        unlink(path); /* left by an earlier process with our pid */
        int descriptor = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (descriptor >= 0)
            return descriptor;
        tm_log("no pool file in %s (error %d): the profile is in memory only", tm_settings.directory, errno);
        path[0] = 0;
    }
    return (int)syscall(SYS_memfd_create, "tidemark-pool", MEMFD_CLOEXEC | MEMFD_SEALS);
}

/* Moves a descriptor to a high number, because programs may count on low ones. */
static int keep_high(int descriptor)
{
    struct rlimit limit;
    int lowest = HIGH_DESCRIPTOR;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur <= HIGH_DESCRIPTOR)
        lowest = limit.rlim_cur > 16 ? (int)limit.rlim_cur - 8 : 3;
    int high = fcntl(descriptor, F_DUPFD_CLOEXEC, lowest);
    if (high < 0)
        return descriptor;
    close(descriptor);
    return high;
}

static void close_kept(void)
{
    if (tm_settings.pool.kept_descriptor >= 0 && is_pool(tm_settings.pool.kept_descriptor, &tm_settings.pool))
        close(tm_settings.pool.kept_descriptor);
    tm_settings.pool.kept_descriptor = -1;
}

/* The pool is sparse, but its length counts. */
static uint64_t slots_within_limit(uint64_t offset, uint64_t wanted)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return wanted;
    uint64_t fit = limit.rlim_cur < offset ? 0 : (limit.rlim_cur - offset) / TM_SLOT_STRIDE;
    return fit < wanted ? fit : wanted;
}

int tm_pool_make_own(uint32_t options)
{
    uint64_t slots = tm_settings.own_pool ? 1 : FAMILY_SLOTS;
    uint64_t offset = page_up(TM_PAGE + slots * sizeof(struct tm_pool_slot));
    slots = slots_within_limit(offset, slots);
    if (slots == 0)
        return EFBIG;
    uint64_t bytes = offset + slots * TM_SLOT_STRIDE;
    close_kept(); /* the parent's */
    char path[sizeof tm_settings.pool.path];
    int descriptor = make_file(path, sizeof path);
    if (descriptor < 0)
        return errno;
    int why = ftruncate(descriptor, (off_t)bytes) != 0 ? errno : 0;
    if (!why)
        why = allocate(descriptor, 0, offset);
    if (!why)
        why = map_head(descriptor, offset);
    if (why) {
        close(descriptor);
        if (path[0])
            unlink(path);
        return why;
    }
    struct tm_pool_header *head = tm_settings.pool.head;
    head->slot_count = (uint32_t)slots;
    head->slots_offset = offset;
    head->slot_stride = TM_SLOT_STRIDE;
    head->run_id = tm_now_ns() ^ (uint64_t)tm_own_pid() << 32;
    head->period_bytes = tm_settings.period ? tm_settings.period : TM_DEFAULT_PERIOD;
    head->options = options;
    head->version = TM_SEGMENT_VERSION;
    __atomic_store_n(&head->magic, TM_POOL_MAGIC, __ATOMIC_RELEASE);
    remember(descriptor, path);
    if (path[0]) {
        close(descriptor);
    } else {
        fcntl(descriptor, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW);
        tm_settings.pool.kept_descriptor = keep_high(descriptor);
    }
    return 0;
}

void tm_pool_unserved(int reason)
{
    struct tm_pool_header *head = tm_settings.pool.head;
    if (!head)
        return;
    __atomic_fetch_add(&head->unserved, 1, __ATOMIC_RELAXED);
    head->unserved_reason = (uint32_t)reason;
}

static struct tm_pool_slot *slot_table(void)
{
    return (struct tm_pool_slot *)((char *)tm_settings.pool.head + TM_PAGE);
}

/* A drained slot must read as zeros before it is used again. */
static int clean(int descriptor, uint64_t offset, uint64_t bytes)
{
    uint64_t magic = 0;
    if (pread(descriptor, &magic, sizeof magic, (off_t)offset) == (ssize_t)sizeof magic && magic == 0)
        return 0;
    return fallocate(descriptor, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset, (off_t)bytes) != 0 ? errno
                                                                                                           : 0;
}

static int map_slot(int descriptor, uint32_t slot, uint8_t **segment)
{
    const struct tm_pool_header *head = tm_settings.pool.head;
    uint64_t offset = head->slots_offset + slot * head->slot_stride;
    int why = clean(descriptor, offset, head->slot_stride);
    if (!why)
        why = allocate(descriptor, offset, TM_PAGE);
    if (why)
        return why;
    uint8_t *place = tm_core.segment; /* from an earlier recording of this image: reused */
    void *mapped = tm_real_mmap(place, TM_SLOT_STRIDE, PROT_READ | PROT_WRITE, MAP_SHARED | (place ? MAP_FIXED : 0),
                                descriptor, (off_t)offset);
    if (mapped == MAP_FAILED)
        return errno;
    if (madvise(mapped, TM_SLOT_STRIDE, MADV_DONTFORK) != 0) {
        why = errno;
        if (!place)
            tm_real_munmap(mapped, TM_SLOT_STRIDE);
        return why;
    }
    *segment = mapped;
    return 0;
}

static uint32_t images_before(uint32_t pid, uint64_t start_ticks)
{
    uint32_t images = 0;
    for (uint32_t i = 0; i < tm_settings.pool.head->slot_count; i++) {
        const struct tm_pool_slot *slot = &slot_table()[i];
        if (slot->pid == pid && slot->process_start_ticks == start_ticks && slot->image > images)
            images = slot->image;
    }
    return images;
}

int tm_pool_may_follow(void)
{
    const struct tm_pool_header *head = tm_settings.pool.head;
    return !(head->options & TM_OPTION_NO_FOLLOW) || __atomic_load_n(&head->claims, __ATOMIC_RELAXED) == 0 ||
           images_before(tm_own_pid(), tm_start_ticks_of_process()) > 0;
}

int tm_pool_claim(uint8_t **segment, uint32_t *image)
{
    struct tm_pool_header *head = tm_settings.pool.head;
    int borrowed, descriptor = pool_open(&borrowed), why = ENOSPC;
    if (descriptor < 0)
        return errno;
    uint32_t pid = tm_own_pid();
    uint64_t start_ticks = tm_start_ticks_of_process();
    uint32_t hint = __atomic_load_n(&head->claims, __ATOMIC_RELAXED);
    *image = images_before(pid, start_ticks) + 1;
    for (uint32_t i = 0; i < head->slot_count; i++) {
        uint32_t number = (hint + i) % head->slot_count, expected = TM_SLOT_FREE;
        struct tm_pool_slot *slot = &slot_table()[number];
        if (!__atomic_compare_exchange_n(&slot->state, &expected, TM_SLOT_CLAIMED, 0, __ATOMIC_ACQ_REL,
                                         __ATOMIC_RELAXED))
            continue;
        why = map_slot(descriptor, number, segment);
        if (why) {
            __atomic_store_n(&slot->state, TM_SLOT_FREE, __ATOMIC_RELEASE);
            break; /* without memory for this slot there is none for another */
        }
        tm_core.slot = number;
        slot->image = *image;
        slot->process_start_ticks = start_ticks;
        slot->claimed_ms = tm_now_ms();
        __atomic_store_n(&slot->pid, pid, __ATOMIC_RELEASE);
        __atomic_fetch_add(&head->claims, 1, __ATOMIC_RELAXED);
        break;
    }
    if (!borrowed)
        close(descriptor);
    return why;
}

/* Populating reports a full device as an error, where a store would raise SIGBUS. */
int tm_pool_reserve(uint64_t offset, uint64_t bytes)
{
    uint8_t *start = tm_core.segment + offset;
    if (madvise(start, bytes, MADV_POPULATE_WRITE) == 0)
        return 0;
    if (errno != EINVAL)
        return errno;
    int borrowed, descriptor = pool_open(&borrowed);
    if (descriptor < 0)
        return errno;
    const struct tm_pool_header *head = tm_settings.pool.head;
    int why = allocate(descriptor, head->slots_offset + tm_core.slot * head->slot_stride + offset, bytes);
    if (!borrowed)
        close(descriptor);
    return why;
}

static void make_private(void *start, uint64_t bytes, int forked)
{
    void *mapped = tm_real_mmap(start, bytes, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    if (mapped != MAP_FAILED && !forked)
        madvise(mapped, bytes, MADV_DONTFORK);
}

void tm_pool_detach(void)
{
    if (tm_core.segment)
        make_private(tm_core.segment, TM_SLOT_STRIDE, 0);
    if (tm_settings.pool.head)
        make_private(tm_settings.pool.head, tm_settings.pool.head_bytes, 1);
    close_kept();
    tm_settings.pool.path[0] = 0;
}
