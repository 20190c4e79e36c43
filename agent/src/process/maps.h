/* maps.h - the mappings of this process, as the kernel lists them (maps.c). */
#ifndef TIDEMARK_MAPS_H
#define TIDEMARK_MAPS_H

#include <stddef.h>
#include <stdint.h>

struct tm_maps {
    int descriptor;
    size_t at, length;
    char text[1024];
};

struct tm_mapping {
    uintptr_t start, end;
    int writable;
    int of_file; /* or of shared memory or a device */
};

/* 0 or an errno. The caller closes the descriptor. */
int tm_maps_open(struct tm_maps *maps);
/* The next mapping by address: 1; 0 at the end; a negative errno on failure. */
int tm_maps_next(struct tm_maps *maps, struct tm_mapping *mapping);

#endif
