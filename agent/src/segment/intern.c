/* intern.c - strings, frames, stacks, labels and threads: each stored once. (locked)
 *
 * The records are in the segment; private hash indexes find them. An index starts at 256
 * entries and doubles in place when three quarters full, so that a small process touches
 * little memory: its entries are rebuilt from the records' own contents.
 *
 *   entry   record id + 1; 0 is empty; linear probing, nothing is ever removed
 */
#include <string.h>
#include <sys/prctl.h>

#include "core/number.h"
#include "core/state.h"
#include "core/system.h"
#include "segment/intern.h"
#include "segment/sections.h"

#define FIRST_BITS 8u
#define STRING_INDEX (64u << 10)
#define FRAME_INDEX (64u << 10)
#define STACK_INDEX (256u << 10)
#define LABEL_INDEX (8u << 10)
#define LONGEST_STRING 1000u

static uint32_t string_index[STRING_INDEX] TM_WIPED;
static uint32_t frame_index[FRAME_INDEX] TM_WIPED;
static uint32_t stack_index[STACK_INDEX] TM_WIPED;
static uint32_t label_index[LABEL_INDEX] TM_WIPED;

struct fill {
    uint32_t used, size;
};
static struct __attribute__((aligned(TM_PAGE))) {
    struct fill of[TM_SECTION_COUNT];
} fills TM_WIPED;

struct index {
    uint32_t *entries;
    uint32_t maximum;
    struct fill *fill;
};

static struct index index_of(enum tm_section_kind kind)
{
    struct fill *fill = &fills.of[kind];
    switch (kind) {
    case TM_SECTION_STRINGS: return (struct index){string_index, STRING_INDEX, fill};
    case TM_SECTION_FRAMES: return (struct index){frame_index, FRAME_INDEX, fill};
    case TM_SECTION_STACKS: return (struct index){stack_index, STACK_INDEX, fill};
    default: return (struct index){label_index, LABEL_INDEX, fill};
    }
}

static uint64_t mix(uint64_t x)
{
    x ^= x >> 32;
    x *= 0x9e3779b97f4a7c15ull;
    x ^= x >> 29;
    x *= 0xbf58476d1ce4e5b9ull;
    return x ^ x >> 32;
}

static uint64_t hash_string(const char *bytes, size_t length)
{
    uint64_t hash = length + 0x9e3779b97f4a7c15ull;
    while (length >= 8) {
        uint64_t word;
        memcpy(&word, bytes, 8);
        hash = mix(hash ^ word);
        bytes += 8;
        length -= 8;
    }
    uint64_t rest = 0;
    memcpy(&rest, bytes, length);
    return mix(hash ^ rest);
}

static uint64_t hash_frame(const struct tm_frame *frame)
{
    return mix(mix((uint64_t)frame->function << 32 | frame->file) ^ frame->address) ^
           mix((uint64_t)frame->line << 34 ^ (uint64_t)frame->first_line << 3 ^ frame->kind);
}

static uint64_t hash_stack(const struct tm_stack_node *node)
{
    return mix((uint64_t)node->parent << 32 | node->frame);
}

static uint64_t hash_label(const struct tm_label *label)
{
    return mix(mix((uint64_t)label->key << 32 | label->value) + label->parent);
}

static uint64_t hash_record(enum tm_section_kind kind, uint32_t id)
{
    switch (kind) {
    case TM_SECTION_STRINGS: {
        const char *string = tm_at(TM_SECTION_STRINGS, id * 8);
        uint32_t length;
        memcpy(&length, string, 4);
        return hash_string(string + 4, length <= LONGEST_STRING ? length : 0);
    }
    case TM_SECTION_FRAMES: return hash_frame(tm_at(kind, id));
    case TM_SECTION_STACKS: return hash_stack(tm_at(kind, id));
    default: return hash_label(tm_at(kind, id));
    }
}

static void put(const struct index *index, uint64_t hash, uint32_t id)
{
    uint32_t mask = index->fill->size - 1, at = (uint32_t)hash & mask;
    while (index->entries[at])
        at = (at + 1) & mask;
    index->entries[at] = id + 1;
    index->fill->used++;
}

/* Makes room for one more entry; 0 if the index is at its bound. */
static int make_room(enum tm_section_kind kind, const struct index *index)
{
    struct fill *fill = index->fill;
    if (fill->used < fill->size / 4 * 3)
        return 1;
    if (fill->size == index->maximum)
        return 0;
    fill->size = fill->size ? fill->size * 2 : 1u << FIRST_BITS;
    memset(index->entries, 0, (size_t)fill->size * sizeof *index->entries);
    fill->used = 0;
    const struct tm_room *room = &tm_core.rooms[kind];
    if (kind == TM_SECTION_STRINGS) {
        for (uint32_t offset = 8; offset < room->count;) {
            uint32_t length;
            memcpy(&length, tm_at(kind, offset), 4);
            put(index, hash_record(kind, offset / 8), offset / 8);
            if (length > LONGEST_STRING)
                return 0; /* the segment was overwritten */
            offset += (4 + length + 7) / 8 * 8;
        }
        return 1;
    }
    for (uint32_t id = kind == TM_SECTION_FRAMES ? 0 : 1; id < room->count; id++)
        put(index, hash_record(kind, id), id);
    return 1;
}

uint32_t tm_intern_string(const char *bytes, size_t length)
{
    if (length == 0)
        return 0;
    if (length > LONGEST_STRING) { /* cut between characters */
        length = LONGEST_STRING;
        while (length && ((unsigned char)bytes[length] & 0xc0) == 0x80)
            length--;
    }
    struct index index = index_of(TM_SECTION_STRINGS);
    uint64_t hash = hash_string(bytes, length);
    uint32_t mask = index.fill->size - 1;
    for (uint32_t at = (uint32_t)hash & mask; index.fill->size && index.entries[at]; at = (at + 1) & mask) {
        const char *known = tm_at(TM_SECTION_STRINGS, (index.entries[at] - 1) * 8);
        uint32_t known_length;
        memcpy(&known_length, known, 4);
        if (known_length == length && memcmp(known + 4, bytes, length) == 0)
            return index.entries[at] - 1;
    }
    uint32_t offset = tm_core.rooms[TM_SECTION_STRINGS].count, end = offset + (uint32_t)(4 + length + 7) / 8 * 8;
    if (!make_room(TM_SECTION_STRINGS, &index) || !tm_room_for(TM_SECTION_STRINGS, end - 1)) {
        tm_section_lost(TM_SECTION_STRINGS, TM_LIMIT_STRINGS_FULL);
        return 0;
    }
    char *string = tm_at(TM_SECTION_STRINGS, offset);
    uint32_t stored = (uint32_t)length;
    memcpy(string, &stored, 4);
    memcpy(string + 4, bytes, length);
    tm_record_changed(TM_SECTION_STRINGS, offset); /* a string may span two blocks */
    tm_records_appended(TM_SECTION_STRINGS, end);
    put(&index, hash, offset / 8);
    return offset / 8;
}

/* Appends a fixed-size record that is not in the index yet; TM_NONE if there is no room. */
static uint32_t append(enum tm_section_kind kind, const struct index *index, uint64_t hash, const void *record)
{
    uint32_t id = tm_core.rooms[kind].count;
    if (!make_room(kind, index) || !tm_room_for(kind, id))
        return TM_NONE;
    memcpy(tm_at(kind, id), record, tm_core.rooms[kind].stride);
    tm_records_appended(kind, id + 1);
    put(index, hash, id);
    return id;
}

static uint32_t intern(enum tm_section_kind kind, uint64_t hash, const void *record, uint32_t limit)
{
    struct index index = index_of(kind);
    uint32_t mask = index.fill->size - 1, stride = tm_core.rooms[kind].stride;
    for (uint32_t at = (uint32_t)hash & mask; index.fill->size && index.entries[at]; at = (at + 1) & mask)
        if (memcmp(tm_at(kind, index.entries[at] - 1), record, stride) == 0)
            return index.entries[at] - 1;
    uint32_t id = append(kind, &index, hash, record);
    if (id == TM_NONE)
        tm_section_lost(kind, limit);
    return id;
}

static uint32_t intern_frame(const struct tm_frame *frame)
{
    return intern(TM_SECTION_FRAMES, hash_frame(frame), frame, TM_LIMIT_STACKS_FULL);
}

uint32_t tm_intern_python_frame(uint32_t function, uint32_t file, uint32_t line, uint32_t first_line)
{
    return intern_frame(&(struct tm_frame){
        .function = function, .file = file, .line = line, .kind = TM_FRAME_PYTHON, .first_line = first_line});
}

uint32_t tm_intern_mark(const char *text)
{
    uint32_t function = tm_intern_string(text, strlen(text));
    return intern_frame(&(struct tm_frame){.function = function, .kind = TM_FRAME_MARK});
}

uint32_t tm_intern_native_frame(uint32_t file, uint64_t address)
{
    return intern_frame(&(struct tm_frame){.file = file, .kind = TM_FRAME_NATIVE, .address = address});
}

/* Runs once per frame of every sample, so the lookup is inlined and a node is compared as one word. */
uint32_t tm_intern_stack(uint32_t parent, uint32_t frame)
{
    if (frame == TM_NONE)
        return parent;
    struct tm_stack_node node = {parent, frame};
    uint64_t wanted = (uint64_t)frame << 32 | parent, hash = hash_stack(&node);
    const struct fill *fill = &fills.of[TM_SECTION_STACKS];
    const uint64_t *nodes = tm_at(TM_SECTION_STACKS, 0);
    uint32_t mask = fill->size - 1;
    for (uint32_t at = (uint32_t)hash & mask; fill->size && stack_index[at]; at = (at + 1) & mask)
        if (nodes[stack_index[at] - 1] == wanted)
            return stack_index[at] - 1;
    struct index index = index_of(TM_SECTION_STACKS);
    uint32_t id = append(TM_SECTION_STACKS, &index, hash, &node);
    if (id == TM_NONE)
        tm_section_lost(TM_SECTION_STACKS, TM_LIMIT_STACKS_FULL);
    return id == TM_NONE ? parent : id;
}

uint32_t tm_intern_label(uint32_t parent, uint32_t key, uint32_t value)
{
    struct tm_label label = {.parent = parent, .key = key, .value = value};
    uint32_t id = intern(TM_SECTION_LABELS, hash_label(&label), &label, 0);
    return id == TM_NONE ? parent : id;
}

/* ---- threads --------------------------------------------------------------------------- */

void tm_check_thread_name(void)
{
    uint32_t index = tm_own_thread.thread;
    if (index == 0 || (tm_random(&tm_own_thread) & 15) != 0)
        return; /* names change rarely, and reading one costs a system call */
    struct tm_thread *record = tm_at(TM_SECTION_THREADS, index);
    char name[24] = {0};
    prctl(PR_GET_NAME, name, 0, 0, 0);
    if (memcmp(record->name, name, sizeof name) == 0)
        return;
    tm_open(&record->sequence_begin, &record->sequence_end);
    memcpy(record->name, name, sizeof name);
    tm_close(&record->sequence_begin, &record->sequence_end);
    tm_record_changed(TM_SECTION_THREADS, index);
}

uint32_t tm_own_thread_index(void)
{
    struct tm_thread_state *thread = &tm_own_thread;
    if (thread->thread == 0) {
        uint32_t index = tm_core.rooms[TM_SECTION_THREADS].count;
        if (!tm_room_for(TM_SECTION_THREADS, index)) {
            tm_section_lost(TM_SECTION_THREADS, 0);
            return 0;
        }
        struct tm_thread *record = tm_at(TM_SECTION_THREADS, index);
        record->tid = tm_own_tid();
        record->is_main = record->tid == tm_core.pid;
        prctl(PR_GET_NAME, record->name, 0, 0, 0);
        tm_records_appended(TM_SECTION_THREADS, index + 1);
        thread->thread = index;
    }
    return thread->thread;
}
