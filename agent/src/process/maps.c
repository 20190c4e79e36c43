/* maps.c - reads /proc/self/maps without allocating memory.
 *
 *   7f0a5c000000-7f0a5c021000 rw-p 00000000 00:00 0        start-end in hexadecimal, permissions, offset, device,
 *                                                          inode (0: no file), and the path
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "process/maps.h"

int tm_maps_open(struct tm_maps *maps)
{
    maps->at = maps->length = 0;
    maps->descriptor = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    return maps->descriptor < 0 ? errno : 0;
}

/* The next byte; -1 at the end. */
static int next(struct tm_maps *maps)
{
    if (maps->at == maps->length) {
        ssize_t got;
        do
            got = read(maps->descriptor, maps->text, sizeof maps->text);
        while (got < 0 && errno == EINTR);
        if (got <= 0)
            return -1;
        maps->at = 0;
        maps->length = (size_t)got;
    }
    return (unsigned char)maps->text[maps->at++];
}

/* A hexadecimal number up to the byte `end`; 0: the line is malformed. */
static int read_number(struct tm_maps *maps, int end, uintptr_t *value)
{
    *value = 0;
    for (;;) {
        int c = next(maps);
        if (c == end)
            return 1;
        if (c >= '0' && c <= '9')
            *value = *value << 4 | (uintptr_t)(c - '0');
        else if (c >= 'a' && c <= 'f')
            *value = *value << 4 | (uintptr_t)(c - 'a' + 10);
        else
            return 0;
    }
}

int tm_maps_next(struct tm_maps *maps, struct tm_mapping *mapping)
{
    uintptr_t number;
    if (!read_number(maps, '-', &mapping->start))
        return 0; /* the end */
    if (!read_number(maps, ' ', &mapping->end))
        return -EIO;
    next(maps); /* r */
    mapping->writable = next(maps) == 'w';
    while (next(maps) > ' ') /* x, p */
        ;
    if (!read_number(maps, ' ', &number) || !read_number(maps, ':', &number) || !read_number(maps, ' ', &number))
        return -EIO;
    mapping->of_file = 0;
    int c = next(maps);
    for (; c >= '0' && c <= '9'; c = next(maps))
        mapping->of_file |= c != '0';
    while (c >= 0 && c != '\n')
        c = next(maps);
    return 1;
}
