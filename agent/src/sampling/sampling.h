/* sampling.h - the slow path, for hooks: samples, sampled allocations that end, and the quiet time at exit. */
#ifndef TIDEMARK_SAMPLING_H
#define TIDEMARK_SAMPLING_H

#include <stddef.h>
#include <stdint.h>

#include "core/core.h"

/* ---- sample.c --------------------------------------------------------------------- */

/* Begins the slow path for an allocation of `bytes` for which tm_spend() returned 1.
 * 0: not sampled after all (disarmed, nested, no sample by the first draw): allocate normally;
 * there is nothing to undo. 1: sampled. Hooks of this thread now pass through; allocate,
 * then call exactly one of tm_record() and tm_leave(). */
int tm_enter(size_t bytes);
/* Ends the slow path: records that `address` (of `bytes`, as requested) was sampled.
 * `return_address` of the native caller becomes the leaf frame; NULL: none (the
 * Python hooks pass NULL for small objects). errno is preserved. */
void tm_record(const void *address, size_t bytes, enum tm_domain domain, const void *return_address);
/* Ends the slow path without a sample (the allocation failed). */
void tm_leave(void);
/* Notes that an allocation failed. Not locked; errno is preserved. Hooks call it where they look at the result anyway: large
 * allocations, and those of Python. Small native ones are not seen. */
void tm_failed(size_t bytes);
/* Turns the agent off in this process and writes a line to the log. Never blocks. */
void tm_turn_off(const char *why);
/* Makes the thread's state belong to this image; not locked. */
void tm_adopt_thread(void);
/* Non-zero while another tool's functions have replaced ours, so that nothing may be sampled; tm_check_covered() decides it. */
extern uint32_t tm_is_covered __attribute__((visibility("hidden"))); /* (atomic) */
static inline int tm_covered(void)
{
    return (int)__atomic_load_n(&tm_is_covered, __ATOMIC_RELAXED);
}

/* ---- release.c -------------------------------------------------------------------- */

/* For hooks of Python allocators that see an object freed that our free does not see
 * (none is known: sampled small blocks come from malloc). `address` may be anything. */
void tm_forget(const void *address);
/* Not locked: a sampled address is about to be freed. */
void tm_sampled_free(const void *address);
struct tm_sampled_block; /* live/live.h */
/* Not 0: a sampled block is about to be reallocated. If that succeeds, call one of the others. */
int tm_realloc_begins(const void *address, struct tm_sampled_block *block);
/* The realloc ended the block, and began another. */
void tm_realloc_ended(const struct tm_sampled_block *block);
/* It is the same block, now at `address`, of `bytes`. `is_little`: the change is not worth a lock. */
void tm_realloc_kept(const struct tm_sampled_block *block, const void *address, size_t bytes, int is_little);
/* (locked) Ends the samples whose frees could not wait for the lock. */
void tm_drain_pending(void);

/* ---- copied.c --------------------------------------------------------------------- */

/* The thread copied `bytes`, and its countdown of copied bytes ends within them. Not locked; errno is preserved. */
void tm_copied(size_t bytes, const void *return_address);

/* ---- ending.c --------------------------------------------------------------------- */

/* Non-zero while the interpreter is being finalized: no sample is taken, and frees are only marked. Not locked. */
int tm_quiet(void);
/* Lock-free: the sampled block of a slot of the live table has ended, or is about to. */
void tm_mark_ended(uint32_t slot);

#endif
