/* mapping.h - sampled mappings, which end piece by piece (mapping.c). All (locked). */
#ifndef TIDEMARK_MAPPING_H
#define TIDEMARK_MAPPING_H

#include <stddef.h>
#include <stdint.h>

/* Whether a live slot belongs to a mapping (those are not in the address index). */
int tm_mapping_owns(uint32_t slot);
/* Forgets the pieces of a slot that was thinned away; 0: it was no mapping. */
int tm_mapping_forget(uint32_t slot);
/* Remembers a fresh sample's range; 0: no room, the sample must be dropped. */
int tm_mapping_add(uintptr_t start, size_t bytes, uint32_t slot);
/* The process lives on after its interpreter's end: what was unmapped meanwhile has ended. */
void tm_mapping_end_the_noted(void);

#endif
