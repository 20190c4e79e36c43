/* control.h - keeps the slow path under its share of time (control.c). */
#ifndef TIDEMARK_CONTROL_H
#define TIDEMARK_CONTROL_H

#include <stdint.h>

void tm_control_begin(void);
/* (locked) Books time of the slow path; tm_control() also counts a sample and acts. */
void tm_control_spent(uint64_t ticks);
void tm_control(uint64_t ticks_spent);
/* (locked) Books time that no sample took; gives it in ns. */
int64_t tm_control_beside(uint64_t ticks);
/* Not locked: a step of a gap, in which nothing was sampled. */
void tm_control_passed(uint64_t bytes);
/* Not locked: a sample was none, for its size. */
void tm_control_thinned(void);
int tm_control_is_due(void);
/* (locked) After steps: the period may fall. */
void tm_control_look(void);
void tm_control_report(void);

#endif
