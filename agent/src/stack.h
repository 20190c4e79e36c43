/* stack.h - the calling thread's stack (stack.c). */
#ifndef TIDEMARK_STACK_H
#define TIDEMARK_STACK_H

#include <stdint.h>

struct tm_raw_frame; /* python.h */

/* Without ids yet. */
struct tm_captured {
    const void *return_address; /* of the native caller; NULL: none is told */
    const void *context;        /* what carries labels (python.h) */
    const struct tm_raw_frame *raw; /* leaf first */
    unsigned raw_count;
    void *const *pcs; /* leaf first */
    unsigned pc_count;
};

/* Captures it and has it written under the lock, into the recording that the thread was adopted for. 0: that
 * has ended, or the lock was not got. Not locked, with `inside` set. */
int tm_with_stack(const void *return_address, void (*write)(const struct tm_captured *captured, void *data), void *data);
/* (locked) The id of the stack. */
uint32_t tm_intern_captured(const struct tm_captured *captured);

#endif
