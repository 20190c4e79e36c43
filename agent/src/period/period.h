/* period.h - the sampling period: one for the process (control.c), coarser ones for blocks that rarely
 * stay live (churn.c), a separate one for large allocations (large.c), and the gaps that threads draw (gap.c). */
#ifndef TIDEMARK_PERIOD_H
#define TIDEMARK_PERIOD_H

#include <stdint.h>

#include "core/core.h"

void tm_set_period(uint64_t period); /* (locked) */
/* (locked) Publishes to readers the coarsest period of all kinds of blocks. */
void tm_publish_period(void);

/* ---- control.c: keeps the slow path within its share of CPU time ------------------------- */

void tm_control_begin(void);
/* (locked) Books time that the slow path spent on an allocation of `bytes`; tm_control() also counts a sample and
 * adjusts the period. */
void tm_control_spent(uint64_t ticks, uint64_t bytes);
void tm_control(uint64_t ticks, uint64_t bytes);
/* (locked) Books time in which no sample was taken; returns it in ns. */
int64_t tm_control_without_sample(uint64_t ticks);
/* Not locked: a step of a gap ended without a sample. */
void tm_control_passed(uint64_t bytes);
/* Not locked: a sample was discarded because of the coarser period of its kind. */
void tm_control_thinned(void);
int tm_control_is_due(void);
/* Non-zero if the configured period was requested whatever it costs. */
int tm_is_fixed(void);
/* Non-zero while the start of the process is paid from its allowance. */
int tm_control_starts(void);
/* (locked) After steps: the period may fall. */
void tm_control_recheck(void);
void tm_control_report(void);
/* (locked) Whether a period may be halved: not below the configured one, nor below what thinning has set while
 * the live table is still that full. */
int tm_may_halve(uint64_t period);

/* ---- churn.c ----------------------------------------------------------------------------- */

/* `functions` is a hash of the innermost functions (python/python.h); 0: unknown. */

/* Non-zero if they decide anything now. */
int tm_churn_asks_functions(uint64_t in_force);
/* The kind of a block: less than TM_SIZES if its size alone decides. */
uint32_t tm_churn_kind(uint64_t bytes, uint64_t functions);
/* The period of a block: the one in force, or a coarser one if little of its kind stays live. */
uint64_t tm_churn_period(uint64_t bytes, uint64_t functions, uint64_t in_force);
/* 0 if blocks of the kind stay live; else how rarely they do, up to TM_SHIFTS - 1. */
uint32_t tm_churn_shift(uint64_t bytes, uint64_t functions);
/* (locked) How many samples of each allocated byte (small allocations) a period in force would take, according
 * to recent ones; discarded ones count partly. */
double tm_churn_samples(uint64_t period);
/* (locked) The coarsest period of all kinds. */
uint64_t tm_churn_coarsest(uint64_t in_force);
/* (locked) A block was sampled; a sampled one was freed. */
void tm_churn_taken(uint64_t bytes, uint64_t functions, double period);
void tm_churn_ended(uint64_t bytes, uint32_t kind);

/* ---- large.c ----------------------------------------------------------------------------- */

void tm_large_begin(void);
int tm_is_large(uint64_t bytes);
/* The period of an allocation. */
uint64_t tm_period_of(uint64_t bytes, uint64_t functions, uint64_t in_force);
/* (locked) The coarsest period of all large sizes. */
uint64_t tm_large_coarsest(uint64_t in_force);
/* Non-zero: a gap of this mean must not count large allocations. */
int tm_large_is_apart(uint64_t period);
/* Non-zero: the thread's gap does not count this allocation; tm_large_is_sampled() decides about it. */
int tm_decides_large(const struct tm_thread_state *thread, uint64_t bytes);
int tm_large_is_sampled(struct tm_thread_state *thread, uint64_t bytes);
/* (locked) Counts a sample. Non-zero: so many were taken that the account should be settled now. */
int tm_large_is_due(void);
/* (locked) Settles the account of the interval since the last check. */
void tm_large_check(double budget_ns, double spent_ns);
/* (locked) Call this if the live table was full. */
void tm_large_thinned(uint64_t period);

/* ---- gap.c ------------------------------------------------------------------------------- */

/* Draws the thread's next gap, of mean `period`. */
void tm_begin_gap(struct tm_thread_state *thread, uint64_t period);
/* Subtracts `bytes` from the gap. 1: the gap ends within them. */
int tm_gap_ends(struct tm_thread_state *thread, uint64_t bytes);
/* Between two steps of a gap. */
void tm_step_gap(struct tm_thread_state *thread);
/* Nothing was sampled for a while: the period may have fallen. */
void tm_renew_gap(struct tm_thread_state *thread);

#endif
