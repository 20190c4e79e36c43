/* number.h - random numbers, and the logarithm and exponential that sampling needs (number.c). */
#ifndef TIDEMARK_NUMBER_H
#define TIDEMARK_NUMBER_H

#include <stdint.h>

#include "core/core.h"

uint64_t tm_random(struct tm_thread_state *thread);
double tm_random_unit(struct tm_thread_state *thread); /* in (0, 1] */
double tm_logarithm(double x);                         /* natural logarithm, x > 0 */
/* 1 - exp(-bytes / period): the probability that an allocation of `bytes` is sampled. */
double tm_chance(double bytes, double period);
/* Whole bytes of an exponential gap of mean `period`. */
uint64_t tm_draw(struct tm_thread_state *thread, uint64_t period);

#endif
