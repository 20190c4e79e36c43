/* failed.c - notes the newest allocation that failed: what a process that ends right after it had run out of. */
#include <errno.h>
#include <sys/resource.h>

#include "core/state.h"
#include "core/system.h"
#include "sampling/sampling.h"

static uint64_t own_limit(int resource)
{
    struct rlimit limit;
    return getrlimit(resource, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY ? limit.rlim_cur : 0;
}

/* Without the lock, which may be held: two threads that fail at once may leave the size of one and the time of the other. */
void tm_failed(size_t bytes)
{
    int saved = errno;
    if (bytes && tm_armed() && __atomic_load_n(&tm_core.pid, __ATOMIC_RELAXED) == tm_own_pid()) {
        struct tm_segment_header *header = tm_core.header;
        header->failed_address_space_limit = own_limit(RLIMIT_AS);
        header->failed_data_limit = own_limit(RLIMIT_DATA);
        header->failed_ms = tm_now_ms();
        header->failed_bytes = bytes;
    }
    errno = saved;
}
