/*
 * period.h - the sampling period: one for the process (control.c), coarser ones for sizes whose blocks rarely
 * stay live (churn.c), and the gaps that threads draw with it (gap.c).
 */
#ifndef TIDEMARK_PERIOD_H
#define TIDEMARK_PERIOD_H

#include <stdint.h>

#include "core/core.h"

void tm_set_period(uint64_t period); /* (locked) */
/* (locked) Publishes to readers the coarsest period of all sizes. */
void tm_publish_period(void);

/* ---- control.c: keeps the slow path within its share of CPU time ------------------------- */

void tm_control_begin(void);
/* (locked) Books time of the slow path; tm_control() also counts a sample and adjusts the period. */
void tm_control_spent(uint64_t ticks);
void tm_control(uint64_t ticks_spent);
/* (locked) Books time in which no sample was taken; returns it in ns. */
int64_t tm_control_beside(uint64_t ticks);
/* Not locked: a step of a gap ended without a sample. */
void tm_control_passed(uint64_t bytes);
/* Not locked: a sample was discarded because of the coarser period of its size. */
void tm_control_thinned(void);
int tm_control_is_due(void);
/* (locked) After steps: the period may fall. */
void tm_control_look(void);
void tm_control_report(void);

/* ---- churn.c ----------------------------------------------------------------------------- */

/* The period of a size: the one in force, or a coarser one if little of the size stays live. */
uint64_t tm_churn_period(uint64_t bytes, uint64_t in_force);
/* (locked) The coarsest period of all sizes. */
uint64_t tm_churn_coarsest(uint64_t in_force);
/* (locked) A block of this size was sampled; a sampled one was freed. */
void tm_churn_taken(uint64_t bytes);
void tm_churn_ended(uint64_t bytes);

/* ---- gap.c ------------------------------------------------------------------------------- */

/* Draws the thread's next gap, of mean `period`. */
void tm_begin_gap(struct tm_thread_state *thread, uint64_t period);
/* Subtracts `bytes` from the gap. 1: the gap ends within them. */
int tm_gap_ends(struct tm_thread_state *thread, uint64_t bytes);
/* Between two steps of a gap, because the period may have fallen. */
void tm_step_gap(struct tm_thread_state *thread);

#endif
