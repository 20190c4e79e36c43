/* segment.c - this process's segment: its header, and sections that grow within it.
 *
 *   0      header                       one page
 *   4096   strings | frames | stacks | threads | labels | sites | live | events | openings
 *
 * Every section has address space for its full size; only its reserved front is ever
 * touched. Growing doubles that front, so offsets never change and a reader's copy of what
 * it has read stays valid; `layout_generation` is odd while a capacity changes.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "core/state.h"
#include "core/system.h"
#include "segment/pool.h"
#include "segment/sections.h"

/* Each maximum is a power of two. */
static const struct {
    uint32_t stride, first, maximum;
} plan[TM_SECTION_COUNT] = {
    [TM_SECTION_STRINGS] = {1, 32768, TM_STRING_BYTES},
    [TM_SECTION_FRAMES] = {sizeof(struct tm_frame), 512, TM_FRAME_COUNT},
    [TM_SECTION_STACKS] = {sizeof(struct tm_stack_node), 1024, TM_STACK_COUNT},
    [TM_SECTION_THREADS] = {sizeof(struct tm_thread), 64, TM_THREAD_COUNT},
    [TM_SECTION_LABELS] = {sizeof(struct tm_label), 256, TM_LABEL_COUNT},
    [TM_SECTION_SITES] = {sizeof(struct tm_site), 128, TM_SITE_COUNT},
    [TM_SECTION_LIVE] = {sizeof(struct tm_live), 512, TM_LIVE_COUNT},
    [TM_SECTION_EVENTS] = {sizeof(struct tm_event), TM_EVENT_COUNT, TM_EVENT_COUNT},
    [TM_SECTION_OPENINGS] = {sizeof(struct tm_opening), 512, TM_OPENING_COUNT},
};

static uint64_t page_up(uint64_t bytes)
{
    return (bytes + TM_PAGE - 1) / TM_PAGE * TM_PAGE;
}

static uint64_t bytes_of(const struct tm_room *room, uint32_t records)
{
    return page_up((uint64_t)room->stride * records);
}

static uint32_t log2_of(uint32_t power)
{
    return 31u - (uint32_t)__builtin_clz(power);
}

static int lay_out(void)
{
    uint64_t offset = TM_PAGE;
    for (int kind = 0; kind < TM_SECTION_COUNT; kind++) {
        struct tm_room *room = &tm_core.rooms[kind];
        *room = (struct tm_room){.stride = plan[kind].stride,
                                 .capacity = plan[kind].first,
                                 .maximum = plan[kind].maximum,
                                 .block_shift = log2_of(plan[kind].maximum / TM_SECTION_BLOCKS),
                                 .offset = offset};
        int why = tm_pool_reserve(offset, bytes_of(room, room->capacity));
        if (why)
            return why;
        struct tm_section *section = &tm_core.header->sections[kind];
        section->offset = offset;
        section->stride = room->stride;
        section->capacity = room->capacity;
        section->block_records = 1u << room->block_shift;
        offset += bytes_of(room, room->maximum);
    }
    return offset <= TM_SLOT_STRIDE ? 0 : ENOSPC;
}

/* Records with number 0 that mean "none" exist from the start; events begin at 0. */
static void write_first_records(void)
{
    tm_records_appended(TM_SECTION_STRINGS, 8);
    tm_records_appended(TM_SECTION_STACKS, 1);
    tm_records_appended(TM_SECTION_THREADS, 1);
    tm_records_appended(TM_SECTION_LABELS, 1);
}

int tm_segment_begin(uint8_t *segment, uint32_t image)
{
    if (tm_core.segment != segment) { /* an earlier recording's segment was at the same address */
        tm_core.segment = segment;
        tm_core.header = (struct tm_segment_header *)segment;
    }
    __atomic_store_n(&tm_core.pid, tm_own_pid(), __ATOMIC_RELAXED);
    int why = lay_out();
    if (why)
        return why; /* the header's page is always reserved */
    struct tm_segment_header *header = tm_core.header;
    header->version = TM_SEGMENT_VERSION;
    header->pid = tm_core.pid;
    header->parent_pid = (uint32_t)getppid();
    header->image = image;
    header->process_start_ticks = tm_start_ticks_of_process();
    header->start_monotonic_ms = tm_now_ms();
    header->start_realtime_ms = tm_realtime_ms();
    header->heartbeat_ms = header->start_monotonic_ms;
    header->configured_period_bytes = tm_core.configured_period;
    header->period_bytes = tm_core.configured_period;
    header->options = tm_core.options;
    header->limits = tm_settings.limits;
    header->python_state = tm_settings.python_state;
    memcpy(header->python_version, tm_settings.python_version, sizeof header->python_version);
    header->command_length = (uint32_t)tm_read_file("/proc/self/cmdline", header->command, TM_COMMAND_BYTES);
    header->log_length = tm_settings.log_length;
    memcpy(header->log, tm_settings.log, TM_LOG_BYTES);
    write_first_records();
    header->state = TM_STATE_ARMED;
    __atomic_store_n(&header->magic, TM_SEGMENT_MAGIC, __ATOMIC_RELEASE);
    return 0;
}

void tm_set_python(enum tm_python_state python_state, const char *version)
{
    tm_settings.python_state = python_state;
    if (version) {
        size_t length = strnlen(version, sizeof tm_settings.python_version - 1);
        memset(tm_settings.python_version, 0, sizeof tm_settings.python_version);
        memcpy(tm_settings.python_version, version, length);
    }
    struct tm_segment_header *header = tm_core.header;
    if (!header)
        return;
    header->python_state = python_state;
    memcpy(header->python_version, tm_settings.python_version, sizeof header->python_version);
}

static void log_no_memory(int why)
{
    if (!(tm_core.header->limits & TM_LIMIT_NO_MEMORY))
        tm_log("no memory for a larger profile (error %d)", why);
    tm_set_limit(TM_LIMIT_NO_MEMORY);
}

static int grow(enum tm_section_kind kind)
{
    struct tm_room *room = &tm_core.rooms[kind];
    uint32_t wanted = room->capacity * 2 > room->maximum ? room->maximum : room->capacity * 2;
    uint64_t before = bytes_of(room, room->capacity), after = bytes_of(room, wanted), now = tm_now_ms();
    if (tm_core.growth_failed_ms && now - tm_core.growth_failed_ms < 1000)
        return 0; /* memory was short a moment ago: retrying at every sample would be expensive */
    int why = after > before ? tm_pool_reserve(room->offset + before, after - before) : 0;
    if (why) {
        tm_core.growth_failed_ms = now ? now : 1;
        log_no_memory(why);
        return 0;
    }
    struct tm_segment_header *header = tm_core.header;
    uint32_t generation = header->layout_generation;
    __atomic_store_n(&header->layout_generation, generation + 1, __ATOMIC_RELEASE);
    room->capacity = wanted;
    __atomic_store_n(&header->sections[kind].capacity, wanted, __ATOMIC_RELEASE);
    __atomic_store_n(&header->layout_generation, generation + 2, __ATOMIC_RELEASE);
    return 1;
}

int tm_room_for(enum tm_section_kind kind, uint32_t index)
{
    struct tm_room *room = &tm_core.rooms[kind];
    while (index >= room->capacity)
        if (room->capacity == room->maximum || !grow(kind))
            return 0;
    return 1;
}

void tm_record_changed(enum tm_section_kind kind, uint32_t index)
{
    struct tm_section *section = &tm_core.header->sections[kind];
    uint32_t block = index >> tm_core.rooms[kind].block_shift;
    __atomic_store_n(&section->block_generation[block], section->block_generation[block] + 1, __ATOMIC_RELEASE);
}

void tm_records_appended(enum tm_section_kind kind, uint32_t count)
{
    struct tm_room *room = &tm_core.rooms[kind];
    tm_record_changed(kind, count - 1);
    room->count = count;
    __atomic_store_n(&tm_core.header->sections[kind].count, count, __ATOMIC_RELEASE);
}

void tm_section_lost(enum tm_section_kind kind, uint32_t limit)
{
    struct tm_section *section = &tm_core.header->sections[kind];
    __atomic_store_n(&section->lost, section->lost + 1, __ATOMIC_RELAXED);
    if (limit)
        tm_set_limit(limit);
}

void tm_heartbeat(uint64_t now_ms)
{
    __atomic_store_n(&tm_core.header->heartbeat_ms, now_ms, __ATOMIC_RELAXED);
}
