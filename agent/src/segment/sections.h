/* sections.h - this process's segment: its header, its growing sections (segment.c), its events (event.c). */
#ifndef TIDEMARK_SECTIONS_H
#define TIDEMARK_SECTIONS_H

#include <stdint.h>

#include "core/state.h"

int tm_segment_begin(uint8_t *segment, uint32_t image); /* 0 or an errno */
/* (locked) Makes room for record `index`; 0: the section has reached its bound, or memory is short. */
int tm_room_for(enum tm_section_kind kind, uint32_t index);
void tm_record_changed(enum tm_section_kind kind, uint32_t index);
/* (locked) Publishes records up to `count` of an append-only section. */
void tm_records_appended(enum tm_section_kind kind, uint32_t count);
void tm_section_lost(enum tm_section_kind kind, uint32_t limit);
void tm_heartbeat(uint64_t now_ms);

/* Sets header.python_state and header.python_version ("3.11.7"; NULL: unchanged). Safe
 * before a segment exists: the values are kept, and written into every segment claimed later. */
void tm_set_python(enum tm_python_state python_state, const char *version);

/* (locked) Appends to the ring of events. */
void tm_event(enum tm_event_kind kind, uint32_t label, uint64_t value);

static inline void *tm_at(enum tm_section_kind kind, uint32_t index)
{
    const struct tm_room *room = &tm_core.rooms[kind];
    return tm_core.segment + room->offset + (uint64_t)index * room->stride;
}

/* Open and close a record that is rewritten (include/segment.h describes the order and why). */
static inline void tm_open(volatile uint32_t *begin, volatile uint32_t *end)
{
    *end = *begin + 1;
    __atomic_signal_fence(__ATOMIC_SEQ_CST); /* x86 preserves the order of stores */
}

static inline void tm_close(volatile uint32_t *begin, volatile uint32_t *end)
{
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    *begin = *end;
}

#endif
