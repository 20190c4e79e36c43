/* hold.h - a stopped process, and a call made in its main thread.
 *
 *   hold.c            stops every task and resumes it
 *   hold_call.c       three calls for a main thread that waits in the kernel
 *   hold_registers.c  the registers of the stopped tasks
 */
#ifndef TIDEMARK_HOLD_H
#define TIDEMARK_HOLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct held_task {
    pid_t tid;
    bool is_stopped;
    bool interrupted; /* stopped only by us: not by job control, and not while delivering a signal */
    int signal;       /* pending, delivered when the task is resumed; 0: none */
};

struct held {
    pid_t pid;
    struct held_task *tasks;
    size_t count, capacity;
    uint64_t since_us, until_us; /* until_us 0: not held */
    uint64_t stopped_us;         /* when the first task had stopped */
    bool loose;                  /* a task was asked to stop and may do so at any time */
};

struct hold_failure {
    const char *kind;
    int number;
    char text[160];
};

/* Addresses in the process, and a NUL-terminated Python source. */
struct planned_call {
    uint64_t restorer; /* mov $15, %eax; syscall */
    uint64_t acquire;  /* PyGILState_STATE PyGILState_Ensure(void) */
    uint64_t run;      /* int PyRun_SimpleString(const char *) */
    uint64_t release;  /* void PyGILState_Release(PyGILState_STATE) */
    const char *source;
};

/* Lays the call, which runs when the process is released. Returns the reason for a refusal, or NULL; after a
 * refusal nothing was written. */
const char *plan_call(struct held *held, const struct planned_call *call);

/* Numbered as DWARF does (System V ABI for x86-64, figure 3.36), the instruction pointer last. */
#define HELD_REGISTERS 17

/* A line for the recorder, `registers TID VALUE... TID VALUE...`, to be freed; NULL if there is no memory. */
char *describe_registers(const struct held *held);

/* The command `hold PID`; returns its exit status. */
int hold_process(pid_t pid);

#endif
