/* release.c - sampled allocations that end: free, realloc, and frees that may not wait.
 *
 * A hook has checked the filter's byte; an address that gets here is a sample or, rarely, another address
 * with the same filter slot. The sample is removed before the real free, because the allocator may hand the
 * address out again at once.
 */
#include <errno.h>

#include "core/lock.h"
#include "core/measure.h"
#include "core/state.h"
#include "core/system.h"
#include "live/live.h"
#include "period/period.h"
#include "sampling/sampling.h"
#include "segment/sections.h"

/* A free that may not wait (inside the agent, in a signal handler) stores its address for later. */
static void leave_pending(const void *address)
{
    for (unsigned i = 0; i < TM_PENDING_COUNT; i++) {
        uintptr_t expected = 0;
        if (__atomic_compare_exchange_n(&tm_core.pending[i], &expected, (uintptr_t)address, 0, __ATOMIC_ACQ_REL,
                                        __ATOMIC_RELAXED)) {
            __atomic_store_n(&tm_core.pending_used, 1, __ATOMIC_RELEASE);
            return;
        }
    }
}

void tm_drain_pending(void)
{
    if (!__atomic_load_n(&tm_core.pending_used, __ATOMIC_RELAXED))
        return;
    __atomic_store_n(&tm_core.pending_used, 0, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < TM_PENDING_COUNT; i++) {
        uintptr_t address = __atomic_exchange_n(&tm_core.pending[i], 0, __ATOMIC_ACQ_REL);
        if (address)
            tm_live_free((const void *)address, tm_now_ms());
    }
}

__attribute__((noinline)) void tm_sampled_free(const void *address)
{
    if (!tm_armed() || !tm_is_sampled(address))
        return;
    int saved = errno;
    tm_part(TM_PART_ENTRY);
    if (!tm_own_thread.inside && tm_quiet()) {
        tm_mark_ended(tm_live_slot(address));
    } else if (tm_own_thread.inside || !tm_lock()) {
        leave_pending(address);
    } else {
        uint64_t ticks = tm_ticks(), now = tm_now_ms();
        tm_own_thread.inside++;
        tm_part(TM_PART_TABLE);
        tm_drain_pending();
        uint64_t bytes = tm_live_free(address, now);
        tm_heartbeat(now);
        tm_part(TM_PART_CONTROL);
        tm_control_spent(tm_ticks() - ticks, bytes);
        tm_own_thread.inside--;
        tm_unlock();
    }
    tm_measured(TM_MEASURED_END);
    errno = saved;
}

void tm_forget(const void *address)
{
    if (tm_maybe_sampled(address))
        tm_sampled_free(address);
}

int tm_realloc_begins(const void *address, struct tm_sampled_block *block)
{
    return tm_armed() && !tm_own_thread.inside && tm_live_find(address, block);
}

void tm_realloc_ended(const struct tm_sampled_block *block)
{
    int saved = errno;
    if (tm_quiet()) {
        tm_mark_ended(block->slot);
    } else if (tm_lock()) {
        tm_live_end(block, tm_now_ms());
        tm_unlock();
    }
    errno = saved;
}

void tm_realloc_kept(const struct tm_sampled_block *block, const void *address, size_t bytes, int is_little)
{
    if (is_little && address == block->address && !tm_is_fixed())
        return;
    int saved = errno;
    if (tm_quiet()) {
        if (address != block->address)
            tm_mark_ended(block->slot); /* its end will not be seen */
    } else if (tm_lock()) {
        tm_live_move(block, address, bytes, tm_now_ms());
        tm_unlock();
    }
    errno = saved;
}
