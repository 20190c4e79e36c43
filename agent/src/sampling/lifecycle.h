/* lifecycle.h - what a sampling point asks of the code that arms the agent and leaves (lifecycle/). */
#ifndef TIDEMARK_LIFECYCLE_H
#define TIDEMARK_LIFECYCLE_H

/* First sample of a forked child: claims a segment. 1: armed. */
int tm_come_alive(void);
/* In an attached program whose recorder has gone: leaves. */
void tm_lease_lapsed(void);
/* When nothing is recording: finishes what an earlier end had to leave in place. */
void tm_finish_leaving(void);
/* Brings the slots of loaded objects up to date; on the slow path, not locked. */
void tm_attach_look(int objects_changed);
/* Non-zero while another tool's functions have replaced ours, so that nothing may be sampled. */
int tm_covered(void);

#endif
