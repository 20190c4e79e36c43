/* options.c - parses the value of TIDEMARK:
 *
 *   pool=/proc/PID/fd/N[,native]        the recorder's pool
 *   period=512K[,dir=/path][,native]    a pool of the process's own
 *   nofollow                            late, in a pool of the process's own: forked children stay inert
 *   copies                              bytes that memcpy and memmove copy too
 *   fixed                               the period stays, whatever its samples cost
 *   off                                 inert
 */
#include <string.h>

#include "lifecycle/options.h"

/* "512K", "1M", "65536"; 0: not a size. */
static uint64_t read_size(const char *text, size_t length)
{
    uint64_t value = 0;
    size_t at = 0;
    while (at < length && text[at] >= '0' && text[at] <= '9' && value < 1ull << 40)
        value = value * 10 + (uint64_t)(text[at++] - '0');
    unsigned shift = 0;
    if (at > 0 && at < length) {
        switch (text[at++]) {
        case 'k': case 'K': shift = 10; break;
        case 'm': case 'M': shift = 20; break;
        case 'g': case 'G': shift = 30; break;
        default: return 0;
        }
    }
    if (at < length && (text[at] == 'i' || text[at] == 'B'))
        at++;
    if (at < length && text[at] == 'B')
        at++;
    return at == length && value <= (1ull << 40) >> shift ? value << shift : 0;
}

static void keep(char *to, const char *text, size_t length)
{
    memcpy(to, text, length);
    to[length] = 0;
}

static void read_option(struct tm_options *options, const char *text, size_t length)
{
    const char *equals = memchr(text, '=', length);
    size_t name = equals ? (size_t)(equals - text) : length, rest = equals ? length - name - 1 : 0;
    if (name == 4 && memcmp(text, "pool", 4) == 0 && rest > 0 && rest < sizeof options->pool)
        keep(options->pool, equals + 1, rest);
    else if (name == 3 && memcmp(text, "dir", 3) == 0 && rest > 0 && rest < sizeof options->directory)
        keep(options->directory, equals + 1, rest);
    else if (name == 6 && memcmp(text, "period", 6) == 0 && read_size(equals ? equals + 1 : "", rest))
        options->period = read_size(equals + 1, rest);
    else if (length == 6 && memcmp(text, "native", 6) == 0)
        options->native = 1;
    else if (length == 6 && memcmp(text, "copies", 6) == 0)
        options->copies = 1;
    else if (length == 8 && memcmp(text, "nofollow", 8) == 0)
        options->no_follow = 1;
    else if (length == 5 && memcmp(text, "fixed", 5) == 0)
        options->fixed = 1;
    else if (length == 3 && memcmp(text, "off", 3) == 0)
        options->on = 0;
    else if (length)
        keep(options->unknown, text, length < sizeof options->unknown ? length : sizeof options->unknown - 1);
}

void tm_read_options(const char *text, struct tm_options *options)
{
    memset(options, 0, sizeof *options);
    options->on = 1;
    while (*text) {
        size_t length = strcspn(text, ",");
        read_option(options, text, length);
        text += length + (text[length] == ',');
    }
}
