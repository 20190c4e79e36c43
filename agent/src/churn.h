/* churn.h - what stays of each size, and the period that follows from it (churn.c). */
#ifndef TIDEMARK_CHURN_H
#define TIDEMARK_CHURN_H

#include <stdint.h>

#define TM_SIZES 64
struct tm_size {
    uint32_t taken, ended; /* (locked) samples of late */
    uint32_t shift;        /* (atomic) log2 of how much coarser its period is */
};

/* The period of a size: the one in force, or coarser where little of the size stays. */
uint64_t tm_churn_period(uint64_t bytes, uint64_t in_force);
/* (locked) The coarsest of all sizes. */
uint64_t tm_churn_coarsest(uint64_t in_force);
/* (locked) A block of this size was sampled; a sampled one was freed. */
void tm_churn_taken(uint64_t bytes);
void tm_churn_ended(uint64_t bytes);

#endif
