/* trail.h - the previous Python stack of each thread (trail.c). (locked) */
#ifndef TIDEMARK_TRAIL_H
#define TIDEMARK_TRAIL_H

#include <stdint.h>

struct tm_raw_frame; /* python/python.h */

/* The id of the calling thread's Python stack, whose frames are leaf first. */
uint32_t tm_trail_intern(const struct tm_raw_frame *raw, unsigned count);

#endif
