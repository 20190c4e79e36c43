/* copied.c - the slow path of memcpy and memmove: from "this copy is the sample" to its record.
 *
 * Every thread counts the bytes it copies down through exponential gaps of mean TM_COPY_PERIOD. The period is
 * constant. A sample takes a few microseconds and follows a mebibyte of copying on average, which takes a hundred,
 * so its share of the time is bounded without a controller.
 *
 * A copy may happen in places where no allocation happens: in a signal handler, under an allocator's lock, between
 * vfork and exec. So this path does less than sample.c: it claims no segment and does not ask the loader for new
 * objects.
 */
#include <errno.h>

#include "core/number.h"
#include "core/state.h"
#include "core/system.h"
#include "live/site.h"
#include "period/period.h"
#include "python/python.h"
#include "sampling/sampling.h"
#include "segment/intern.h"
#include "segment/pool.h"
#include "segment/sections.h"
#include "stacks/stack.h"

struct copied {
    size_t bytes;
    uint64_t now_ms, ticks;
};

/* (locked) */
static void write_copy(const struct tm_captured *captured, void *data)
{
    const struct copied *copied = data;
    uint32_t stack = tm_intern_captured(captured);
    uint32_t label = captured->context ? tm_python_label(captured->context, 0) : 0;
    uint32_t site = tm_find_site(stack, label, tm_own_thread_index(), TM_DOMAIN_COPIES, copied->now_ms);
    if (site == TM_NONE)
        tm_core.header->samples_lost++;
    else
        tm_site_copied(site, tm_weigh(copied->bytes, copied->bytes, (double)TM_COPY_PERIOD), copied->now_ms);
    tm_heartbeat(copied->now_ms);
    tm_control_without_sample(tm_ticks() - copied->ticks);
}

static void draw_gap(struct tm_thread_state *thread)
{
    uint64_t gap = tm_draw(thread, TM_COPY_PERIOD) + 1; /* never 0, which means "not drawn" */
    thread->copies = gap < UINT32_MAX ? (uint32_t)gap : UINT32_MAX;
}

/* Without a gap yet: draws one and counts this copy. 1: the copy is the sample. */
static int is_sampled(struct tm_thread_state *thread, size_t bytes)
{
    if (thread->copies)
        return 1;
    draw_gap(thread);
    if (bytes >= thread->copies)
        return 1;
    thread->copies -= (uint32_t)bytes;
    return 0;
}

__attribute__((noinline)) void tm_copied(size_t bytes, const void *return_address)
{
    struct tm_thread_state *thread = &tm_own_thread;
    if (thread->inside)
        return;
    int saved = errno;
    if (!tm_armed() || __atomic_load_n(&tm_core.pid, __ATOMIC_RELAXED) != tm_own_pid() || tm_quiet() || tm_covered()) {
        thread->copies = TM_COPY_PERIOD; /* check again after that many bytes */
    } else {
        thread->inside = 1;
        tm_adopt_thread();
        if (is_sampled(thread, bytes)) {
            struct copied copied = {bytes, tm_now_ms(), tm_ticks()};
            tm_with_stack(return_address, write_copy, &copied);
            draw_gap(thread);
        }
        thread->inside = 0;
    }
    errno = saved;
}
