/* arming.h - shared by the two ways of arming the agent: at load (start.c) and on request (attach.c). */
#ifndef TIDEMARK_ARMING_H
#define TIDEMARK_ARMING_H

#include <stddef.h>

#include "lifecycle/options.h"

/* ---- start.c: the steps of arming, in this order. Those that return an int return 0 or an errno. ------ */

int tm_open_pool(const struct tm_options *options);
void tm_note_other_allocators(void);
void tm_enable(int on);
int tm_begin_image(void); /* by one thread, in phase CLAIMING */
void tm_begin_sampling(void);
/* Marks this image's pages so that forked children find them zeroed; 0: the kernel cannot do this. */
int tm_wipe_on_fork(void);
/* (locked, after recording has ended) Zeroes what belongs to one recording. */
void tm_forget_recording(void);

/* ---- attach.c, covered.c, status.c ----------------------------------------------------- */

/* Which slots this recording writes: those of copies on request, those of allocations if loaded late. */
void tm_slots_begin(void);
int tm_slots_are_used(void);
void tm_slots_write_all(void);
/* Brings the slots of loaded objects up to date; on the slow path, not locked. */
void tm_update_slots(int objects_changed);
/* Rewrites the slots of loaded objects after another tool has overwritten them. */
void tm_rewrite_slots(void);
/* When attaching late: finds the slots that show whether another tool has replaced our functions. */
void tm_cover_begin(void);
/* At the end of an arming: whether another tool's functions have stayed in the place of ours. */
void tm_cover_end(void);
/* Writes one JSON document; returns its length. */
size_t tm_status(char *text, size_t capacity);

#endif
