/* intern.c - maps a captured frame to a frame of the segment, mostly by a cache.
 *
 * The cache is a fixed table of sets of four, keyed by (code object, instruction). Code
 * objects are freed and their addresses reused, so a hit counts only if everything that identifies
 * the function is unchanged: name, file, line table, instructions, first line. An
 * entry is one cache line; the newest of a set comes first, and the last one is evicted.
 * Guarded by the core lock; a forked child finds it zeroed.
 */
#include "core/core.h"
#include "python/python.h"
#include "python/state.h"
#include "segment/intern.h"

_Static_assert(sizeof(struct tm_known_frame) == 64, "one cache line");

#define SET_COUNT 512u
#define SET_SIZE 4u
/* The core cuts strings at 1000 bytes; this bound lets us cut between characters. */
#define LONGEST_TEXT 999u

static struct tm_known_frame cache[SET_COUNT][SET_SIZE] TM_WIPED;

/* The fields that identify a code object now, as a cache entry without its id. */
static void describe(const struct tm_raw_frame *raw, struct tm_known_frame *entry)
{
    const struct tm_python_layout *layout = &tm_python.layout;
    const char *code = raw->code;
    const char *sized = code; /* the object whose ob_size counts the instructions */
    entry->code = code;
    entry->name = tm_pointer_at(code, layout->code_qualified_name != TM_NO_OFFSET ? layout->code_qualified_name
                                                                                  : layout->code_name);
    entry->file = tm_pointer_at(code, layout->code_file);
    entry->lines = tm_pointer_at(code, layout->code_lines);
    if (layout->line_table == TM_LINES_LOCATIONS)
        entry->instructions = code + layout->code_bytes;
    else
        entry->instructions = sized = tm_pointer_at(code, layout->code_bytes);
    entry->size = (uint32_t)tm_word_at(sized, layout->variable_size);
    entry->first_line = (uint32_t)tm_int_at(code, layout->code_first_line);
    entry->position = raw->position;
    entry->incarnation = tm_incarnation();
}

int tm_python_is_same_function(const struct tm_known_frame *a, const struct tm_known_frame *b)
{
    return a->code == b->code && a->name == b->name && a->file == b->file && a->lines == b->lines &&
           a->instructions == b->instructions && a->size == b->size && a->first_line == b->first_line;
}

static int is_same(const struct tm_known_frame *a, const struct tm_known_frame *b)
{
    return a->position == b->position && a->incarnation == b->incarnation && tm_python_is_same_function(a, b);
}

int tm_python_is_same(const struct tm_raw_frame *raw, const struct tm_known_frame *known)
{
    struct tm_known_frame now = {0};
    if (raw->code != known->code || raw->position != known->position)
        return 0; /* the other fields are in memory that may be cold */
    describe(raw, &now);
    return is_same(&now, known);
}

static struct tm_known_frame *set_of(const struct tm_raw_frame *raw)
{
    uint64_t key = ((uint64_t)(uintptr_t)raw->code >> 4) ^ ((uint64_t)raw->position << 40);
    return cache[key * 0x9e3779b97f4a7c15ull >> 55];
}
_Static_assert(SET_COUNT == 1u << (64 - 55), "the hash's shift gives a set");

static uint32_t intern_text(const void *unicode)
{
    char text[LONGEST_TEXT];
    if (!unicode || tm_type_of(unicode) != tm_python.unicode_type)
        return 0;
    const char *ascii;
    size_t length = tm_python_ascii(unicode, &ascii);
    if (length)
        return tm_intern_string(ascii, length < sizeof text ? length : sizeof text);
    return tm_intern_string(text, tm_python_text(unicode, text, sizeof text));
}

static uint32_t intern_known(const struct tm_raw_frame *raw, struct tm_known_frame *known)
{
    describe(raw, known);
    struct tm_known_frame *set = set_of(raw);
    for (unsigned i = 0; i < SET_SIZE; i++)
        if (is_same(&set[i], known))
            return set[i].frame;

    int64_t offset = raw->position == UINT32_MAX ? -1 : (int64_t)raw->position;
    uint32_t frame = tm_intern_python_frame(intern_text(known->name), intern_text(known->file),
                                            tm_python_line(known, offset), known->first_line);
    if (frame == TM_NONE)
        return TM_NONE;
    known->frame = frame;
    memmove(&set[1], &set[0], sizeof set[0] * (SET_SIZE - 1));
    set[0] = *known;
    return frame;
}

uint32_t tm_python_intern(const struct tm_raw_frame *raw, struct tm_known_frame *known)
{
    known->stack = 0;
    known->frame = intern_known(raw, known);
    return known->frame;
}
