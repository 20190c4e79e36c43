/* lock.h - the core lock, with bounded waiting (lock.c). */
#ifndef TIDEMARK_LOCK_H
#define TIDEMARK_LOCK_H

int tm_lock(void);        /* 0: not acquired in bounded time, or nothing is recorded (any more) */
int tm_lock_always(void); /* the same, whether or not a recording is active */
int tm_try_lock(void);    /* 0: another thread holds it; never waits */
void tm_unlock(void);
int tm_lock_is_mine(void);

/* Called with a sentence if the lock is not released for long; it turns the agent off. Set before the lock is
 * first contended; NULL: nothing is called. */
extern void (*tm_lock_stuck)(const char *why) __attribute__((visibility("hidden")));

#endif
