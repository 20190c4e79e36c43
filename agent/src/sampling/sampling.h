/* sampling.h - what hooks need beyond core.h: the end of sampled allocations, and the quiet time at exit. */
#ifndef TIDEMARK_SAMPLING_H
#define TIDEMARK_SAMPLING_H

#include <stdint.h>

#include "core/core.h"

/* ---- sample.c --------------------------------------------------------------------- */

/* Makes the thread's state belong to this image; not locked. */
void tm_adopt_thread(void);

/* ---- release.c -------------------------------------------------------------------- */

/* Not locked: a sampled address is about to be freed. */
void tm_sampled_free(const void *address);
/* Removes the sample for a realloc that may fail. Not 0: `taken` holds it; the value identifies the recording. */
uint32_t tm_take_for_realloc(const void *address, struct tm_live *taken);
void tm_settle_realloc(const struct tm_live *taken, int moved, uint32_t recording);
/* (locked) Ends the samples whose frees could not wait for the lock. */
void tm_drain_pending(void);

/* ---- ending.c --------------------------------------------------------------------- */

/* Non-zero while the interpreter is being finalised: no sample is taken, ends are only marked. Not locked. */
int tm_quiet(void);
/* Lock-free: this sampled address is about to be freed. */
void tm_mark_ended(const void *address);

#endif
