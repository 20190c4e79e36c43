/* pool.h - the shared memory that outlives this process, and this process's slot in it (pool.c). */
#ifndef TIDEMARK_POOL_H
#define TIDEMARK_POOL_H

#include <stdint.h>

int tm_pool_open_given(const char *path); /* 0 or an errno */
/* Creates a file or memfd for this image or, if the agent was attached late, also for its children.
 * `options`: TM_OPTION_*. 0 or an errno. */
int tm_pool_make_own(uint32_t options);
/* With NO_FOLLOW only the first process of the run is recorded, through all its images. */
int tm_pool_may_follow(void);
/* Finds a free slot and maps it; 0 or an errno. */
int tm_pool_claim(uint8_t **segment, uint32_t *image);
/* Makes [offset, offset + bytes) of this segment safe to write; 0 or an errno. */
int tm_pool_reserve(uint64_t offset, uint64_t bytes);
/* Counts an image that got no slot; `reason` is an errno. */
void tm_pool_unserved(int reason);
/* Replaces the pool with private memory: its addresses stay valid, and its memory is returned. */
void tm_pool_detach(void);

#endif
