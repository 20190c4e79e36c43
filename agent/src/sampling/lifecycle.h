/* lifecycle.h - what sampling points and hooks ask of the code that arms the agent and leaves (lifecycle/). */
#ifndef TIDEMARK_LIFECYCLE_H
#define TIDEMARK_LIFECYCLE_H

#include <stdint.h>

/* First sample of a forked child: claims a segment. 1: armed. */
int tm_come_alive(void);
/* In an attached program whose recorder has gone: leaves. */
void tm_lease_lapsed(void);
/* When nothing is recording: finishes what an earlier end had to leave in place. */
void tm_finish_leaving(void);
/* Checks from time to time which objects have been loaded since, and whether Python's hooks are still set;
 * on the slow path, not locked. */
void tm_check_objects(uint64_t now_ms);
/* Non-zero while another tool's functions have replaced ours, so that nothing may be sampled. */
int tm_covered(void);
/* Checks whether another tool's functions have replaced ours. Called where the interpreter might itself
 * call malloc() or free(), and where no thread's lock is held. */
void tm_look_for_cover(void);

#endif
