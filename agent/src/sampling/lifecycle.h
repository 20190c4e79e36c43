/* lifecycle.h - the functions of lifecycle/ (arming and leaving) that sampling points and hooks call. */
#ifndef TIDEMARK_LIFECYCLE_H
#define TIDEMARK_LIFECYCLE_H

#include <stdint.h>

/* First sample of a forked child: claims a segment. 1: armed. */
int tm_claim_in_child(void);
/* Leaves an attached program whose recorder has exited. */
void tm_lease_lapsed(void);
/* When nothing is recording: removes what could not be removed when the last recording ended. */
void tm_finish_leaving(void);
/* Checks from time to time which objects have been loaded since, and whether Python's hooks are still set;
 * on the slow path, not locked. */
void tm_check_objects(uint64_t now_ms);
/* Checks whether another tool's functions have replaced ours. Called where the interpreter might itself
 * call malloc() or free(), and where no thread's lock is held. */
void tm_check_covered(void);

#endif
