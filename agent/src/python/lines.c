/* lines.c - maps an instruction to its line, by the three table formats that CPython has had.
 *
 *   <= 3.9  co_lnotab     pairs (unsigned address delta, signed line delta): a line starts
 *                         where its address is reached          Objects/lnotab_notes.txt
 *   3.10    co_linetable  pairs (unsigned length, signed line delta): ranges; -128: no line
 *   >= 3.11 co_linetable  entries; the first byte has bit 7 set, a code in bits 3-6 and the
 *                         length in instructions less one in bits 0-2   Objects/locations.md
 */
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

static uint32_t line_of_lnotab(const unsigned char *table, size_t size, int64_t offset, int64_t line)
{
    int64_t address = 0;
    for (size_t i = 0; i + 1 < size; i += 2) {
        address += table[i];
        if (address > offset)
            break;
        line += (signed char)table[i + 1];
    }
    return line > 0 ? (uint32_t)line : 0;
}

static uint32_t line_of_ranges(const unsigned char *table, size_t size, int64_t offset, int64_t line)
{
    int64_t end = 0;
    for (size_t i = 0; i + 1 < size; i += 2) {
        int delta = (signed char)table[i + 1];
        end += table[i];
        if (delta != RANGES_NO_LINE)
            line += delta;
        if (offset < end)
            return delta != RANGES_NO_LINE && line > 0 ? (uint32_t)line : 0;
    }
    return 0;
}

/* Six bits a byte, bit 6 says that more follow; the lowest bit of the whole is the sign. */
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

static uint32_t line_of_locations(const unsigned char *table, size_t size, int64_t offset, int64_t line)
{
    const unsigned char *at = table, *end = table + size;
    int64_t address = 0;
    while (at < end) {
        unsigned code = *at >> 3 & 15;
        int64_t length = 2 * ((*at & 7) + 1);
        if (code >= LOCATION_ONE_LINE_0 && code <= LOCATION_ONE_LINE_2)
            line += code - LOCATION_ONE_LINE_0;
        else if (code == LOCATION_NO_COLUMNS || code == LOCATION_LONG)
            line += signed_varint(at + 1, end);
        address += length;
        if (offset < address)
            return code != LOCATION_NONE && line > 0 ? (uint32_t)line : 0;
        do
            at++;
        while (at < end && !(*at & 128));
    }
    return 0;
}

uint32_t tm_python_line(const void *code, int64_t instruction_offset)
{
    const struct tm_python_layout *layout = &tm_python.layout;
    const char *lines = tm_pointer_at(code, layout->code_lines);
    int32_t first_line = tm_int_at(code, layout->code_first_line);
    if (instruction_offset < 0)
        return first_line > 0 ? (uint32_t)first_line : 0;
    if (!lines || tm_type_of(lines) != tm_python.bytes_type)
        return 0;
    const unsigned char *table = (const unsigned char *)lines + layout->bytes_data;
    uint64_t size = tm_word_at(lines, layout->variable_size);
    if (size > LARGEST_TABLE)
        return 0;
    switch (layout->line_table) {
    case TM_LINES_LNOTAB:
        return line_of_lnotab(table, size, instruction_offset, first_line);
    case TM_LINES_RANGES:
        return line_of_ranges(table, size, instruction_offset, first_line);
    default:
        return line_of_locations(table, size, instruction_offset, first_line);
    }
}
