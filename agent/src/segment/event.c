/* event.c - marks on the timeline, in a ring: a long run keeps the latest ones. */
#include "core/state.h"
#include "core/system.h"
#include "segment/sections.h"

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
