/* stack.h - the calling thread's stack, captured and then interned (stack.c). */
#ifndef TIDEMARK_STACK_H
#define TIDEMARK_STACK_H

#include <stdint.h>

struct tm_raw_frame; /* python/python.h */

/* A stack whose frames have no ids yet. */
struct tm_captured {
    const void *return_address; /* of the native caller; NULL: unknown */
    const void *context;        /* carries labels (python/python.h) */
    const struct tm_raw_frame *raw; /* leaf first */
    unsigned raw_count;
    void *const *pcs; /* leaf first */
    unsigned pc_count;
};

/* Captures the stack and calls `write` with it under the lock, if the recording that the thread was adopted for
 * is still active. 0: that recording has ended, or the lock was not acquired. Not locked; `inside` must be set. */
int tm_with_stack(const void *return_address, void (*write)(const struct tm_captured *captured, void *data), void *data);
/* (locked) The stack, continued by a mark that so many frames are missing. */
uint32_t tm_intern_left_out(uint32_t stack, unsigned left_out);
/* (locked) The id of the stack. */
uint32_t tm_intern_captured(const struct tm_captured *captured);

#endif
