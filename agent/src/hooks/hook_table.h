/* hook_table.h - every function that ours replace, with its name and its slot group (hook_table.c). */
#ifndef TIDEMARK_HOOK_TABLE_H
#define TIDEMARK_HOOK_TABLE_H

#include <stdint.h>

#define TM_HOOK_COUNT 36u
#define TM_NO_HOOK 0xffu
#define TM_HOOK_FREE 0u

/* Functions that end allocations are hooked before those that begin them, and restored after them. Functions that
 * copy are hooked only on request. */
enum tm_slot_group { TM_SLOTS_ENDS = 0, TM_SLOTS_BEGINNINGS = 1, TM_SLOTS_COPIES = 2 };

/* A function of the program and the one of ours that replaces it. */
struct tm_hook {
    const char *name;
    void *ours;
    void *real; /* what a slot must contain for us to change it; NULL: it is left alone */
    enum tm_slot_group group;
};
extern struct tm_hook tm_hooks[TM_HOOK_COUNT] __attribute__((visibility("hidden")));

/* Finds the real functions, except those that copy. */
void tm_hooks_find(void);
void tm_hooks_find_group(enum tm_slot_group group);
/* Finds the real functions that copy; their slots may be written from now on. */
void tm_copies_begin(void);

#endif
