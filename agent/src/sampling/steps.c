/* steps.c - the steps that a program marks on the timeline (tidemark.h). */
#include <errno.h>
#include <string.h>

#include "core/lock.h"
#include "core/state.h"
#include "core/system.h"
#include "sampling/lifecycle.h"
#include "segment/intern.h"
#include "segment/sections.h"
#include "tidemark.h"

static void step(enum tm_event_kind kind, const char *name, uint64_t number)
{
    int saved = errno;
    if (!tm_own_thread.inside && (tm_armed() || tm_claim_in_child()) && tm_core.pid == tm_own_pid() && tm_lock()) {
        uint32_t key = tm_intern_string("step", 4), value = tm_intern_string(name, strlen(name));
        tm_event(kind, tm_intern_label(0, key, value), number);
        tm_heartbeat(tm_now_ms());
        tm_unlock();
    }
    errno = saved;
}

void tidemark_step_begin(const char *name, uint64_t number)
{
    step(TM_EVENT_STEP_BEGIN, name, number);
}

void tidemark_step_end(const char *name, uint64_t number)
{
    step(TM_EVENT_STEP_END, name, number);
}
