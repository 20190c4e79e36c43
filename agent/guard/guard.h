/* guard.h - tidemark-guard: starts the program as the shell would have, and keeps its pool.
 *
 *   main.c     the sequence: start the recorder, then the program, then wait
 *   inherit.c  what the shell passed on: signal dispositions, mask, descriptors
 *   wire.c     lines to and from the recorder (docs/spine.md describes them)
 *   pool.c     the sealed memfd, and the file that outlives it
 *   witness.c  distinguishes a signal sent to the guard alone from one sent to its whole group
 *   hold.c     the second command: stops a live process, makes calls in it, reads its registers (hold.h)
 *   keep.c     the third command: holds the pool of a process that was attached late
 *
 * Single-threaded, so everything may be called between fork and exec.
 */
#ifndef TIDEMARK_GUARD_H
#define TIDEMARK_GUARD_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* ---- inherit.c ---- */
struct inherited {
    sigset_t mask;
    struct sigaction sigchld; /* the only disposition the guard itself must change */
};
/* Remembers mask and dispositions, then blocks every signal: the guard receives them through a signalfd. */
void inherited_take(struct inherited *inherited);
/* In a child before exec: restores what the shell had set. */
void inherited_give_back(const struct inherited *inherited);
/* Moves one of the guard's descriptors above the standard ones. The shell may have closed those, and the
 * program must find them closed. Returns -1 with errno if there is no room. */
int descriptor_aside(int fd);
/* Closes every descriptor from 3 up except those in keep[]. */
void close_descriptors_but(const int *keep, size_t count);
/* Closes the descriptors that the shell passed on, so that the reader of a pipe sees its end when the program
 * closes it. Standard error stays open, because the recorder prints there. */
void release_inherited_descriptors(const int *keep, size_t count);

/* The recorder is not the program: limits on the program's memory and time are lifted as far as possible. */
void lift_limits(void);
/* Bytes of address space that lift_limits() would leave; all limits stay as they are. */
unsigned long long address_space_available(void);

/* ---- wire.c ---- */
struct wire {
    int fd;
    char *buffer;
    size_t length, capacity;
};
struct message {
    char **fields; /* fields[0] is the verb; NULL-terminated */
    size_t count;
};
/* Reads what is available. False at end of file, on error, or if a line is longer than any argv. */
bool wire_fill(struct wire *wire);
/* Takes the next whole line; false if there is none. Free with message_free. */
bool wire_next(struct wire *wire, struct message *message);
void message_free(struct message *message);
/* Sends one line; `text` is escaped and appended as the last field, unless it is NULL. */
void wire_send(struct wire *wire, const char *head, const char *text);
/* Sends whole lines unchanged. */
void wire_write(struct wire *wire, const char *lines, size_t length);

/* ---- pool.c ---- */
/* Creates the sealed pool; returns its descriptor, or -1 with errno. */
int pool_create(uint32_t slots, uint64_t period, uint32_t options);
/* Writes the used slots to `path` (a new, private file). Returns 0 or an errno. */
int pool_save(int pool, const char *path);

/* ---- witness.c ---- */
/* A process in the guard's group that keeps every signal pending. */
pid_t witness_start(void);
/* True if the group also received `number`; the witness is then replaced. */
bool witness_saw(pid_t *witness, int number);

/* ---- keep.c ---- */
/* The command `keep`; returns its exit status. */
int keep_pool(void);

/* ---- events.c ---- */
/* The command `events`; returns its exit status. */
int report_events(void);

#endif
