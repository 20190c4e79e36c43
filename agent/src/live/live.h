/* live.h - the live samples: the filter, the index by address, their records (live.c). */
#ifndef TIDEMARK_LIVE_H
#define TIDEMARK_LIVE_H

#include <stddef.h>
#include <stdint.h>

#include "core/state.h"

/* ---- filter: may this address be a sample? ------------------------------------------ */

/* One bit for each slot. A cache line of it stands for 8 KiB of neighbouring addresses, and all of it fits into the second level
 * of the cache, because every free reads it. */
extern uint64_t tm_filter[TM_FILTER_SLOTS / 64] __attribute__((visibility("hidden")));

static inline size_t tm_filter_slot(const void *address)
{
    return ((uintptr_t)address >> 4) & (TM_FILTER_SLOTS - 1);
}

static inline int tm_maybe_sampled(const void *address)
{
    size_t slot = tm_filter_slot(address);
    return __atomic_load_n(&tm_filter[slot / 64], __ATOMIC_RELAXED) >> slot % 64 & 1;
}

/* ---- live.c ----------------------------------------------------------------------- */

/* Lock-free: the slot of an address; TM_NONE: no live sample; TM_LIVE_COUNT: it could not be determined. */
uint32_t tm_live_slot(const void *address);
int tm_is_sampled(const void *address);
/* (locked) A slot for a new sample; TM_NONE if none is available. The caller counts it (live/site.h).
 * `kind`: of period/churn.c, to which its end is reported. `indexed`: its end is found by its address, which does not
 * apply to mappings. */
uint32_t tm_live_insert(const struct tm_live *values, uint32_t kind, int indexed);
/* (locked) Removes the sample at an address, if there is one, and counts its end; returns its bytes. */
uint64_t tm_live_free(const void *address, uint64_t now_ms);
/* Lock-free: the sample of a block that a realloc may move. While it does, another thread may be given the block's address and
 * even end its sample, so the block is identified by its slot and generation. */
struct tm_sampled_block {
    const void *address;
    uint32_t slot, generation, recording;
};
/* 0: none. */
int tm_live_find(const void *address, struct tm_sampled_block *block);
/* (locked) The block has ended; or it is at `address` now and has `bytes`. Neither does anything if the sample has ended meanwhile. */
void tm_live_end(const struct tm_sampled_block *block, uint64_t now_ms);
void tm_live_move(const struct tm_sampled_block *block, const void *address, uint64_t bytes, uint64_t now_ms);
/* (locked) The sample of a mapping: how much of it is mapped now; 0 ends the sample. */
void tm_live_resize(uint32_t slot, uint64_t bytes, uint64_t now_ms);
/* (locked) Raises the period and thins the live samples to match. */
void tm_thin(void);

#endif
