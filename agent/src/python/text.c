/* text.c - reads the text of a str object as UTF-8 from its structure.
 *
 *   PyASCIIObject    head | length | hash | state           | text, when ascii
 *   PyCompactUnicode  ... PyASCIIObject ... | utf8 cache    | text of 1, 2 or 4 bytes a character
 *   PyUnicodeObject   ... PyCompactUnicode ... | pointer to the text    (not compact)
 */
#include "python/state.h"

#define LONGEST_CHARACTER 6u /* \udc80 */

static uint32_t character_at(const char *data, unsigned kind, size_t index)
{
    uint16_t two;
    uint32_t four;
    switch (kind) {
    case 1:
        return (unsigned char)data[index];
    case 2:
        memcpy(&two, data + 2 * index, sizeof two);
        return two;
    default:
        memcpy(&four, data + 4 * index, sizeof four);
        return four;
    }
}

/* A lone surrogate is not a character: CPython uses them for undecodable bytes in file names. */
static size_t write_surrogate(uint32_t character, char *text)
{
    static const char digits[] = "0123456789abcdef";
    text[0] = '\\';
    text[1] = 'u';
    for (unsigned i = 0; i < 4; i++)
        text[2 + i] = digits[character >> (12 - 4 * i) & 15];
    return 6;
}

static size_t write_character(uint32_t character, char *text)
{
    if (character < 0x80) {
        text[0] = (char)character;
        return 1;
    }
    if (character < 0x800) {
        text[0] = (char)(0xc0 | character >> 6);
        text[1] = (char)(0x80 | (character & 0x3f));
        return 2;
    }
    if (character >= 0xd800 && character < 0xe000)
        return write_surrogate(character, text);
    if (character < 0x10000) {
        text[0] = (char)(0xe0 | character >> 12);
        text[1] = (char)(0x80 | (character >> 6 & 0x3f));
        text[2] = (char)(0x80 | (character & 0x3f));
        return 3;
    }
    text[0] = (char)(0xf0 | (character >> 18 & 7));
    text[1] = (char)(0x80 | (character >> 12 & 0x3f));
    text[2] = (char)(0x80 | (character >> 6 & 0x3f));
    text[3] = (char)(0x80 | (character & 0x3f));
    return 4;
}

size_t tm_python_text(const void *unicode, char *text, size_t capacity)
{
    const struct tm_python_layout *layout = &tm_python.layout;
    uint32_t state = (uint32_t)tm_int_at(unicode, layout->unicode_state);
    uint64_t length = tm_word_at(unicode, layout->unicode_length);
    unsigned kind = state >> layout->unicode_kind_shift & 7;
    const char *data;
    if (!(state >> layout->unicode_compact_shift & 1))
        data = tm_pointer_at(unicode, layout->unicode_pointer);
    else if (state >> layout->unicode_ascii_shift & 1)
        data = (const char *)unicode + layout->unicode_ascii_size;
    else
        data = (const char *)unicode + layout->unicode_compact_size;
    if (!data || (kind != 1 && kind != 2 && kind != 4))
        return 0; /* not ready (3.9-3.11): a name of a code object always is */

    size_t written = 0;
    for (uint64_t i = 0; i < length && written + LONGEST_CHARACTER <= capacity; i++)
        written += write_character(character_at(data, kind, i), text + written);
    return written;
}

size_t tm_python_ascii(const void *unicode, const char **text)
{
    const struct tm_python_layout *layout = &tm_python.layout;
    uint32_t state = (uint32_t)tm_int_at(unicode, layout->unicode_state);
    if (!(state >> layout->unicode_compact_shift & 1) || !(state >> layout->unicode_ascii_shift & 1) ||
        (state >> layout->unicode_kind_shift & 7) != 1)
        return 0;
    *text = (const char *)unicode + layout->unicode_ascii_size;
    return tm_word_at(unicode, layout->unicode_length);
}
