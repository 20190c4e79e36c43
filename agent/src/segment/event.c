/* event.c - marks on the timeline: a ring, so a long run keeps its latest. */
#include <errno.h>
#include <string.h>

#include "core/lock.h"
#include "core/state.h"
#include "core/system.h"
#include "sampling/lifecycle.h"
#include "segment/intern.h"
#include "segment/sections.h"
#include "tidemark.h"

void tm_event(enum tm_event_kind kind, uint32_t label, uint64_t value)
{
    struct tm_room *room = &tm_core.rooms[TM_SECTION_EVENTS];
    uint32_t number = room->count, index = number % room->capacity;
    struct tm_event *event = tm_at(TM_SECTION_EVENTS, index);
    tm_open(&event->sequence_begin, &event->sequence_end);
    event->kind = kind;
    event->ms = tm_now_ms();
    event->value = value;
    event->label = label;
    tm_close(&event->sequence_begin, &event->sequence_end);
    tm_record_changed(TM_SECTION_EVENTS, index);
    room->count = number + 1;
    __atomic_store_n(&tm_core.header->sections[TM_SECTION_EVENTS].count, number + 1, __ATOMIC_RELEASE);
}

static void step(enum tm_event_kind kind, const char *name, uint64_t number)
{
    int saved = errno;
    if (!tm_own_thread.inside && (tm_armed() || tm_come_alive()) && tm_core.pid == tm_own_pid() && tm_lock()) {
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
