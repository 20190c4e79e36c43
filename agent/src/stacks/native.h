/* native.h - native frames (native.c) and the walk through them (unwind.c). */
#ifndef TIDEMARK_NATIVE_H
#define TIDEMARK_NATIVE_H

#include <stdint.h>

#include "process/objects.h"

#define TM_NATIVE_FRAMES 128u
void tm_native_begin(int backtraces);
/* The native stack, leaf first, from the caller at `return_address` on. Not locked. */
unsigned tm_native_backtrace(void *pcs[TM_NATIVE_FRAMES], const void *return_address);
/* Brings the table of objects up to date. Not locked: takes the loader's lock, and ours inside it. */
void tm_native_refresh(void);
/* (locked) */
int tm_native_knows(const void *pc);
uint32_t tm_native_intern(const void *pc);

/* ---- unwind.c --------------------------------------------------------------------- */

/* Loads and finds the unwinder, early, while that is still harmless. */
void tm_unwind_begin(void);
/* (locked) Adds an object that a walk may pass through. */
void tm_unwind_object(const struct tm_object *object);
/* Return addresses of this thread's frames, leaf first; returns their number. Not locked. */
unsigned tm_unwind(void *pcs[TM_NATIVE_FRAMES]);

#endif
