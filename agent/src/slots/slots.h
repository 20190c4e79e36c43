/* slots.h - rewrites the pointers in loaded objects to the functions that ours replace.
 *
 *   relocations.c   into which words of an object the loader wrote a function's address
 *   protection.c    whether the loader has made their pages read-only yet
 *   slots.c         what was written, and how it is restored
 *
 * Callers hold `tm_core.arming`. Each call takes the loader's list lock, so no object is unloaded while its
 * words are examined.
 */
#ifndef TIDEMARK_SLOTS_H
#define TIDEMARK_SLOTS_H

#include <stdint.h>

#include "hooks/hook_table.h"
#include "process/objects.h"

/* ---- slots.c -------------------------------------------------------------------------- */

struct tm_slot_counts {
    uint32_t objects; /* with at least one slot of ours */
    uint32_t slots;
    uint32_t waiting; /* objects that the loader has not finished */
};

/* Writes one group into every loaded object that is not done yet. Returns 0 or an errno. */
int tm_slots_write(enum tm_slot_group group);
/* Restores one group wherever it is still ours. Returns the number of slots that had to stay. */
uint32_t tm_slots_restore(enum tm_slot_group group);
/* After both groups were restored: forgets all slots. */
void tm_slots_forget(void);
struct tm_slot_counts tm_slots_count(void);
/* Non-zero if objects wait, or if lazy slots were written so recently that the loader may overwrite them. */
int tm_slots_due(void);

/* ---- relocations.c -------------------------------------------------------------------- */

/* A word that contains, or will contain once the loader resolves it, the address of `hook`'s function. */
struct tm_slot_place {
    uintptr_t *address;
    uint8_t hook;
    uint8_t lazy; /* still points to the object's own stub, which calls the loader */
};

/* The groups (bits of enum tm_slot_group) whose slots are found from now on. */
void tm_slots_choose(unsigned groups);
/* Calls `found` for each; `found` returns 0 to stop. */
void tm_each_slot(const struct tm_object *object, int (*found)(const struct tm_slot_place *, void *), void *data);

/* The word through which an object calls a function of another, whatever it contains; NULL: none. */
uintptr_t *tm_named_slot(const struct tm_object *object, const char *name);

/* ---- protection.c --------------------------------------------------------------------- */

/* 1: the page may be written, 0: not; negative: unknown, with the negative errno as the reason. */
int tm_is_writable(uintptr_t page);
/* Ends a walk and discards what was read for it. */
void tm_protection_end(void);

#endif
