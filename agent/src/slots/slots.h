/* slots.h - the pointers to what we stand for that loaded objects hold, made to point to ours (slots.c).
 *
 *   relocations.c   which words of an object the loader wrote a function's address into
 *   protection.c    whether the loader has made their pages read-only yet
 *   slots.c         what was written, and taking it back
 *
 * Callers hold `tm_core.arming`. Each call takes the loader's list lock, so that no object
 * goes away while its words are looked at.
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
    uint32_t waiting; /* objects that the loader was still busy with */
};

/* Writes one group into every loaded object that is not done yet. 0 or an errno. */
int tm_slots_write(enum tm_slot_group group);
/* Takes one group back wherever it still is ours. Gives the number that had to stay. */
uint32_t tm_slots_restore(enum tm_slot_group group);
/* After both groups were taken back: nothing is known any more. */
void tm_slots_forget(void);
struct tm_slot_counts tm_slots_count(void);
/* Objects wait, or lazy slots were written so lately that the loader may have written over them. */
int tm_slots_due(void);

/* ---- relocations.c -------------------------------------------------------------------- */

/* A word that holds, or will hold once the loader resolves it, the address of `hook`'s function. */
struct tm_slot_place {
    uintptr_t *address;
    uint8_t hook;
    uint8_t lazy; /* still points to the object's own stub that asks the loader */
};

/* Calls `found` for each; it gives 0 to stop. */
void tm_each_slot(const struct tm_object *object, int (*found)(const struct tm_slot_place *, void *), void *data);

/* The word that an object calls a function of another by, whatever it holds; NULL: none. */
uintptr_t *tm_named_slot(const struct tm_object *object, const char *name);

/* ---- protection.c --------------------------------------------------------------------- */

/* 1: the page may be written, 0: not; less than 0: an errno tells why that cannot be known. */
int tm_is_writable(uintptr_t page);
/* A walk ends: what it was told is forgotten. */
void tm_protection_end(void);

#endif
