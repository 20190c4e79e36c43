/* mapping.h - sampled mappings, which end piece by piece (mapping.c). All are (locked) except tm_mapping_any(). */
#ifndef TIDEMARK_MAPPING_H
#define TIDEMARK_MAPPING_H

#include <stddef.h>
#include <stdint.h>

#include "core/state.h"

/* Whether a live slot belongs to a mapping (mappings are not in the address index). */
int tm_mapping_owns(uint32_t slot);
/* Removes the pieces of a slot that was thinned out; 0: the slot was not a mapping. */
int tm_mapping_forget(uint32_t slot);
/* Stores the range of a new sample; 0: no room, the sample must be dropped. */
int tm_mapping_add(uintptr_t start, size_t bytes, uint32_t slot);
/* The process continues after its interpreter's end: ends what was unmapped in the meantime. */
void tm_mapping_end_noted(void);

/* Non-zero while any piece is tracked. Not locked. */
static inline int tm_mapping_any(void)
{
    return __atomic_load_n(&tm_core.fragment_count, __ATOMIC_RELAXED) != 0;
}

/* Stops tracking [start, end): it was unmapped, or mapped over. */
void tm_mapping_cut(uintptr_t start, uintptr_t end);
/* [start, end) was unmapped. `quiet`: while the interpreter is finalized, so the range is only noted. */
void tm_mapping_end_range(uintptr_t start, uintptr_t end, int quiet);
/* mremap() has moved or resized a mapping. */
void tm_mapping_moved(uintptr_t old_start, size_t old_length, uintptr_t new_start, size_t new_length);
/* Domain of the piece that ended at `grown`, where its mapping has grown; 0: none is tracked there. */
int tm_mapping_domain(uintptr_t grown, enum tm_domain *domain);

#endif
