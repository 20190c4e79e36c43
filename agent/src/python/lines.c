/* lines.c - maps an instruction to its line, with the three table formats that CPython has used.
 *
 *   <= 3.9  co_lnotab     pairs (unsigned address delta, signed line delta): a line starts
 *                         where its address is reached          Objects/lnotab_notes.txt
 *   3.10    co_linetable  pairs (unsigned length, signed line delta): ranges; -128: no line
 *   >= 3.11 co_linetable  entries; the first byte has bit 7 set, a code in bits 3-6 and the
 *                         length in instructions less one in bits 0-2   Objects/locations.md
 *
 * All of them are read from the start. The body of a large module has a table of many kilobytes, and each sample is
 * at another instruction, so the next search in a code object continues where the previous one ended. (locked)
 */
#include "core/core.h"
#include "python/python.h"
#include "python/state.h"

enum location_code {
    LOCATION_ONE_LINE_0 = 10, /* line delta 0, 1, 2 */
    LOCATION_ONE_LINE_2 = 12,
    LOCATION_NO_COLUMNS = 13, /* signed varint line delta */
    LOCATION_LONG = 14,       /* the same, more after it */
    LOCATION_NONE = 15,
};

#define RANGES_NO_LINE (-128)
#define LARGEST_TABLE (64u << 20)
/* Shorter tables are read from the start. */
#define SHORT_TABLE 64u
#define PLACE_COUNT 64u

struct table {
    const unsigned char *bytes;
    size_t size;
};

/* A position in a table: the entry `at`, and the address and line that result from the entries before it. */
struct place {
    size_t at;
    int64_t address, line;
};

static uint32_t line_of_lnotab(struct table table, int64_t offset, struct place *place)
{
    for (; place->at + 1 < table.size; place->at += 2) {
        int64_t address = place->address + table.bytes[place->at];
        if (address > offset)
            break;
        place->address = address;
        place->line += (signed char)table.bytes[place->at + 1];
    }
    return place->line > 0 ? (uint32_t)place->line : 0;
}

static uint32_t line_of_ranges(struct table table, int64_t offset, struct place *place)
{
    for (; place->at + 1 < table.size; place->at += 2) {
        int delta = (signed char)table.bytes[place->at + 1];
        int64_t end = place->address + table.bytes[place->at];
        int64_t line = delta != RANGES_NO_LINE ? place->line + delta : place->line;
        if (offset < end)
            return delta != RANGES_NO_LINE && line > 0 ? (uint32_t)line : 0;
        place->address = end;
        place->line = line;
    }
    return 0;
}

/* Six bits per byte; bit 6 is set if another byte follows. The lowest bit of the result is the sign. */
static int64_t signed_varint(const unsigned char *at, const unsigned char *end)
{
    uint64_t value = 0;
    for (unsigned shift = 0; at < end && shift < 36; shift += 6, at++) {
        value |= (uint64_t)(*at & 63) << shift;
        if (!(*at & 64))
            break;
    }
    return value & 1 ? -(int64_t)(value >> 1) : (int64_t)(value >> 1);
}

static uint32_t line_of_locations(struct table table, int64_t offset, struct place *place)
{
    const unsigned char *at = table.bytes + place->at, *end = table.bytes + table.size;
    while (at < end) {
        unsigned code = *at >> 3 & 15;
        int64_t after = place->address + 2 * ((*at & 7) + 1), line = place->line;
        if (code >= LOCATION_ONE_LINE_0 && code <= LOCATION_ONE_LINE_2)
            line += code - LOCATION_ONE_LINE_0;
        else if (code == LOCATION_NO_COLUMNS || code == LOCATION_LONG)
            line += signed_varint(at + 1, end);
        if (offset < after)
            return code != LOCATION_NONE && line > 0 ? (uint32_t)line : 0;
        do
            at++;
        while (at < end && !(*at & 128));
        *place = (struct place){.at = (size_t)(at - table.bytes), .address = after, .line = line};
    }
    return 0;
}

static uint32_t search(struct table table, int64_t offset, struct place *place)
{
    switch (tm_python.layout.line_table) {
    case TM_LINES_LNOTAB:
        return line_of_lnotab(table, offset, place);
    case TM_LINES_RANGES:
        return line_of_ranges(table, offset, place);
    default:
        return line_of_locations(table, offset, place);
    }
}

/* Where the last search in a code object ended. Code objects are freed and their addresses reused, so everything
 * that identifies the function is compared, as for a known frame. */
static struct last_place {
    struct tm_known_frame function;
    struct place place;
    uint64_t table_size, unused[4]; /* two cache lines */
} last_places[PLACE_COUNT] TM_WIPED;
_Static_assert(sizeof last_places % TM_PAGE == 0 && sizeof(struct last_place) == 128, "whole pages, whole cache lines");

uint32_t tm_python_line(const struct tm_known_frame *frame, int64_t instruction_offset)
{
    const struct tm_python_layout *layout = &tm_python.layout;
    const char *lines = frame->lines;
    struct place start = {.line = (int32_t)frame->first_line};
    if (instruction_offset < 0)
        return start.line > 0 ? (uint32_t)start.line : 0;
    if (!lines || tm_type_of(lines) != tm_python.bytes_type)
        return 0;
    struct table table = {(const unsigned char *)lines + layout->bytes_data, tm_word_at(lines, layout->variable_size)};
    if (table.size > LARGEST_TABLE)
        return 0;
    if (table.size < SHORT_TABLE)
        return search(table, instruction_offset, &start);
    struct last_place *last = &last_places[((uintptr_t)frame->code >> 4) * 0x9e3779b97f4a7c15ull >> 58];
    if (!tm_python_is_same_function(&last->function, frame) || last->table_size != table.size ||
        last->place.address > instruction_offset)
        *last = (struct last_place){.function = *frame, .place = start, .table_size = table.size};
    return search(table, instruction_offset, &last->place);
}
_Static_assert(PLACE_COUNT == 1u << (64 - 58), "the hash's shift gives a place");
