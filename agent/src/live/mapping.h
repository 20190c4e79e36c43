/* mapping.h - sampled mappings, which end piece by piece (hooks/mapping.c). All (locked). */
#ifndef TIDEMARK_MAPPING_H
#define TIDEMARK_MAPPING_H

#include <stddef.h>
#include <stdint.h>

/* Whether a live slot belongs to a mapping (mappings are not in the address index). */
int tm_mapping_owns(uint32_t slot);
/* Forgets the pieces of a slot that was thinned out; 0: the slot was no mapping. */
int tm_mapping_forget(uint32_t slot);
/* Remembers the range of a new sample; 0: no room, the sample must be dropped. */
int tm_mapping_add(uintptr_t start, size_t bytes, uint32_t slot);
/* The process lives on after its interpreter's end: ends what was unmapped in the meantime. */
void tm_mapping_end_the_noted(void);

#endif
