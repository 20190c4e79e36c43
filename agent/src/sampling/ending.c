/* ending.c - stops recording while the interpreter is finalized.
 *
 * Once finalization is detected, nothing is sampled, and freeing a sampled block only sets one bit, without
 * a lock. So finalization takes no longer than without the agent. This matters because a daemon thread that
 * returns to a finalized interpreter may crash in CPython itself (3.9, 3.10: take_gil() of 3.10.13 reads
 * the freed interpreter). Such a thread waits for the GIL, which the main thread finally releases shortly
 * before the process exits. With a single system call between the two, on a busy machine, every eighth program
 * with daemon threads crashed. So the CPU clock, which needs a system call, is read when finalization begins.
 * The final live figures are what the program held before finalization.
 *
 *   NONE -- finalizing --> QUIET -- the process continues --> PASSED -- initialized again --> NONE
 *
 * A process may outlive its interpreter: a host finalizes it, continues, and may initialize another. The
 * process is assumed to continue when the runtime is no longer finalizing, when it has had no interpreter for
 * OVER_MS, and after LONGEST_MS at the latest. Then the marked samples are ended, and sampling
 * continues; allocations made in between are not seen.
 */
#include "core/lock.h"
#include "core/state.h"
#include "core/system.h"
#include "live/live.h"
#include "live/mapping.h"
#include "period/period.h"
#include "python/python.h"
#include "sampling/sampling.h"
#include "segment/sections.h"

/* An ordinary process exits within this time after its interpreter was finalized. */
#define OVER_MS 1000
#define LONGEST_MS 30000

enum { NONE = 0, QUIET = 1, PASSED = 2 };

static struct __attribute__((aligned(TM_PAGE))) {
    uint32_t state;
    uint64_t since_ms;
    uint64_t over_ms; /* first seen without an interpreter; 0: not yet */
} ending TM_WIPED;

static uint8_t ended[TM_LIVE_COUNT / 8] TM_WIPED;

/* (locked) */
static void end_marked(void)
{
    uint64_t now = tm_now_ms();
    for (uint32_t slot = 0; slot < tm_core.rooms[TM_SECTION_LIVE].count; slot++) {
        if (!(__atomic_load_n(&ended[slot / 8], __ATOMIC_RELAXED) & 1u << slot % 8))
            continue;
        const struct tm_live *record = tm_at(TM_SECTION_LIVE, slot);
        if (record->address)
            tm_live_free((const void *)record->address, now);
    }
    for (uint32_t i = 0; i < sizeof ended; i++)
        __atomic_store_n(&ended[i], 0, __ATOMIC_RELAXED);
    tm_mapping_end_noted();
}

static void live_on(uint32_t state)
{
    if (!tm_lock())
        return;
    if (__atomic_load_n(&ending.state, __ATOMIC_RELAXED) == QUIET)
        end_marked();
    __atomic_store_n(&ending.state, state, __ATOMIC_RELEASE);
    __atomic_store_n(&ending.over_ms, 0, __ATOMIC_RELAXED);
    tm_unlock();
}

static int is_over(uint64_t now)
{
    uint64_t over = __atomic_load_n(&ending.over_ms, __ATOMIC_RELAXED);
    if (!tm_python_has_interpreter()) {
        if (over != 0)
            return now - over > OVER_MS;
        __atomic_store_n(&ending.over_ms, now, __ATOMIC_RELAXED);
    }
    return now - ending.since_ms > LONGEST_MS;
}

int tm_quiet(void)
{
    uint32_t state = __atomic_load_n(&ending.state, __ATOMIC_ACQUIRE);
    if (TM_LIKELY(!tm_python_finalises())) {
        if (TM_UNLIKELY(state != NONE))
            live_on(NONE);
        return 0;
    }
    if (state == PASSED)
        return 0;
    uint64_t now = tm_now_ms();
    if (state == NONE) {
        ending.since_ms = now;
        __atomic_store_n(&ending.state, QUIET, __ATOMIC_RELEASE);
        if (tm_try_lock()) {
            tm_control_report();
            tm_unlock();
        }
    }
    if (!is_over(now))
        return 1;
    live_on(PASSED);
    return 0;
}

void tm_mark_ended(uint32_t slot)
{
    if (slot < TM_LIVE_COUNT)
        __atomic_fetch_or(&ended[slot / 8], (uint8_t)(1u << slot % 8), __ATOMIC_RELAXED);
}
