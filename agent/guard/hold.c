/* tidemark-guard hold PID : stops a process for a reader or writer outside, and resumes it.
 *
 * Lines on standard input and output, as on the wire of `host` (docs/spine.md):
 *
 *   (at the start)         -> ready
 *   hold MAX_MS            -> held TASKS                    every task is stopped
 *                          -> failed KIND ERRNO TEXT        no task is stopped; KIND: gone, ended, traced,
 *                                                           permission, busy (TEXT: the task), system
 *   call A B C D SOURCE    -> calling                       see hold_call.c; the numbers are hex
 *                          -> refused TEXT                  nothing was written
 *   registers              -> registers TID VALUE... ...    hold_registers.c; 17 values each, hex
 *   go                     -> released PAUSE_US          since the first task has stopped
 *   (MAX_MS passed)        -> lapsed PAUSE_US               the process has resumed without `go`
 *   end of file            the process is resumed, the guard exits
 *
 * A stop is PTRACE_SEIZE and PTRACE_INTERRUPT: no signal is sent, no parent or shell is notified, no
 * register is touched, and the kernel resumes every task by itself when this process dies, for whatever
 * reason. So a hold never leaves a state that anyone must clean up.
 *
 * A task may stop with a pending signal that was about to be delivered: it is stopped all the same, and
 * gets the signal when it is resumed. A process that job control has stopped stays stopped afterwards.
 */
#include "guard.h"
#include "hold.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* How long stopped tasks may wait for a task that does not stop, because it is in an uninterruptible wait (a dead
 * network disk) or waits for a core. If no task has stopped yet and all wait for a core, waiting costs the process
 * nothing. */
#define LONGEST_STOP_US 500000
#define LONGEST_WAIT_FOR_CORE_US 10000000
/* For a tool that traces a task to let it go. */
#define LONGEST_WAIT_FOR_TRACER_US 100000
#define LAST_WAIT_FOR_TRACER_US 2000
#define TRACER_CHECK_NS 100000
#define SEIZE_TRIES 20

static uint64_t now_us(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000 + (uint64_t)time.tv_nsec / 1000;
}

static struct held_task *find(struct held *held, pid_t tid) {
    for (size_t i = 0; i < held->count; i++)
        if (held->tasks[i].tid == tid)
            return &held->tasks[i];
    return NULL;
}

/* The value of a line in /proc/PID/status, or in that of a task; 0 if there is none. */
static long status_number(pid_t pid, pid_t tid, const char *name) {
    char path[64], text[4096];
    snprintf(path, sizeof path, "/proc/%d/task/%d/status", (int)pid, (int)tid);
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    long value = 0;
    size_t length = strlen(name);
    while (fgets(text, sizeof text, file))
        if (!strncmp(text, name, length) && text[length] == ':')
            value = strtol(text + length + 1, NULL, 10);
    fclose(file);
    return value;
}

static char task_state(pid_t pid, pid_t tid) {
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%d/task/%d/stat", (int)pid, (int)tid);
    FILE *file = fopen(path, "re");
    if (!file)
        return 'X';
    size_t got = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[got] = '\0';
    char *at = strrchr(text, ')'); /* the name before it may contain anything */
    return at && at[1] == ' ' ? at[2] : 'X';
}

/* Returns 0, or why not; `tracer`: who traces the task. A sampling profiler lets it go repeatedly, but on a busy
 * machine only for a moment, so it is tried often, though not for long once a task is stopped. A tracer that lets the
 * task go before it is asked for looks like a missing permission: that is believed only if it is always the answer. */
static int seize(const struct held *held, pid_t tid, long *tracer) {
    uint64_t deadline = now_us() + (held->count == 0 ? LONGEST_WAIT_FOR_TRACER_US : LAST_WAIT_FOR_TRACER_US);
    for (int untraced = 0;;) {
        if (ptrace(PTRACE_SEIZE, tid, 0, 0) == 0)
            return 0;
        int why = errno;
        *tracer = status_number(held->pid, tid, "TracerPid");
        untraced = *tracer > 0 ? 0 : untraced + 1;
        if (why != EPERM || untraced == SEIZE_TRIES || (*tracer > 0 && now_us() >= deadline))
            return why;
        /* Without a pause, the two may stay in step: traced at each attempt to seize, not traced at each check. */
        nanosleep(&(struct timespec){.tv_nsec = TRACER_CHECK_NS}, NULL);
    }
}

static void explain_refusal(struct hold_failure *failure, long tracer, int why) {
    failure->number = why;
    if (tracer > 0) {
        failure->kind = "traced";
        snprintf(failure->text, sizeof failure->text, "%ld", tracer);
    } else {
        failure->kind = why == EPERM || why == EACCES ? "permission" : "system";
        snprintf(failure->text, sizeof failure->text, "%s", strerror(why));
    }
}

/* Seizes every task that is not seized yet. Returns how many were new, or -1 with the failure. */
static int seize_new(struct held *held, struct hold_failure *failure) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", (int)held->pid);
    DIR *directory = opendir(path);
    if (!directory) {
        failure->kind = errno == ENOENT ? "gone" : "system";
        failure->number = errno;
        snprintf(failure->text, sizeof failure->text, "%s", strerror(errno));
        return -1;
    }
    int fresh = 0;
    struct dirent *entry;
    while (fresh >= 0 && (entry = readdir(directory))) {
        pid_t tid = atoi(entry->d_name);
        if (tid <= 0 || find(held, tid))
            continue;
        if (held->count == held->capacity) {
            size_t wanted = held->capacity ? held->capacity * 2 : 64;
            struct held_task *grown = realloc(held->tasks, wanted * sizeof *grown);
            if (!grown) {
                *failure = (struct hold_failure){.kind = "system", .number = ENOMEM, .text = "no memory"};
                fresh = -1;
                break;
            }
            held->tasks = grown;
            held->capacity = wanted;
        }
        long tracer = 0;
        int why = seize(held, tid, &tracer);
        if (why != 0) {
            char state = task_state(held->pid, tid);
            if (why == ESRCH || state == 'Z' || state == 'X')
                continue; /* ended in the meantime, or a main thread that ended before its others */
            explain_refusal(failure, tracer, why);
            fresh = -1;
            break;
        }
        held->tasks[held->count++] = (struct held_task){.tid = tid};
        ptrace(PTRACE_INTERRUPT, tid, 0, 0);
        fresh++;
    }
    closedir(directory);
    return fresh;
}

/* Collects the stops that have happened; with `wait`, also those that happen before the deadline. */
static bool await_stops(struct held *held, uint64_t deadline) {
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    for (;;) {
        int status;
        pid_t tid;
        while ((tid = waitpid(-1, &status, __WALL | WNOHANG)) > 0) {
            struct held_task *task = find(held, tid);
            if (task && WIFSTOPPED(status)) {
                held->stopped_us = held->stopped_us ? held->stopped_us : now_us();
                task->is_stopped = true;
                task->interrupted = status >> 16 == PTRACE_EVENT_STOP && WSTOPSIG(status) == SIGTRAP;
                task->signal = status >> 16 ? 0 : WSTOPSIG(status);
            } else if (task) {
                *task = held->tasks[--held->count]; /* ended */
            }
        }
        bool all = true;
        for (size_t i = 0; i < held->count; i++)
            all = all && held->tasks[i].is_stopped;
        uint64_t now = now_us();
        if (all || now >= deadline)
            return all;
        uint64_t rest = deadline - now;
        sigtimedwait(&child, NULL,
                     &(struct timespec){.tv_sec = (time_t)(rest / 1000000),
                                        .tv_nsec = (long)(rest % 1000000) * 1000});
    }
}

/* Only a stopped task can be detached. A task that was asked to stop but has not is freed when this process
 * ends, which is soon (`loose`). */
static void let_go(struct held *held) {
    for (size_t i = 0; i < held->count; i++) {
        struct held_task *task = &held->tasks[i];
        if (task->is_stopped)
            ptrace(PTRACE_DETACH, task->tid, 0, (long)task->signal);
        else
            held->loose = true;
    }
    held->count = 0;
}

/* A task in an uninterruptible wait; 0: the missing tasks wait for a core. */
static pid_t stuck_task(const struct held *held) {
    for (size_t i = 0; i < held->count; i++)
        if (!held->tasks[i].is_stopped && task_state(held->pid, held->tasks[i].tid) == 'D')
            return held->tasks[i].tid;
    return 0;
}

static bool any_is_stopped(const struct held *held) {
    for (size_t i = 0; i < held->count; i++)
        if (held->tasks[i].is_stopped)
            return true;
    return false;
}

static bool take_hold(struct held *held, struct hold_failure *failure) {
    held->since_us = now_us();
    held->stopped_us = 0;
    for (int fresh = 1; fresh != 0;) {
        fresh = seize_new(held, failure);
        uint64_t deadline = held->since_us + LONGEST_STOP_US;
        bool all = await_stops(held, deadline);
        while (!all && !any_is_stopped(held) && stuck_task(held) == 0 &&
               deadline < held->since_us + LONGEST_WAIT_FOR_CORE_US) {
            deadline += LONGEST_STOP_US;
            all = await_stops(held, deadline);
        }
        if (fresh < 0)
            return false;
        if (!all) {
            pid_t stuck = stuck_task(held);
            failure->number = EBUSY;
            if (stuck != 0) {
                failure->kind = "busy";
                snprintf(failure->text, sizeof failure->text, "%d", (int)stuck);
            } else {
                snprintf(failure->text, sizeof failure->text, "no core was free on which it could stop");
            }
            return false;
        }
    }
    if (held->count == 0) {
        failure->kind = "ended";
        failure->number = ESRCH;
        snprintf(failure->text, sizeof failure->text, "it has ended and waits for its parent");
        return false;
    }
    return true;
}

static void hold(struct held *held, struct wire *out, const char *limit) {
    struct hold_failure failure = {.kind = "system"};
    char head[96];
    if (!take_hold(held, &failure)) {
        let_go(held);
        snprintf(head, sizeof head, "failed\t%s\t%d", failure.kind, failure.number);
        wire_send(out, head, failure.text);
        return;
    }
    held->until_us = held->since_us + strtoull(limit, NULL, 10) * 1000;
    snprintf(head, sizeof head, "held\t%zu", held->count);
    wire_send(out, head, NULL);
}

static void release(struct held *held, struct wire *out, const char *verb) {
    if (held->count == 0 && held->since_us == 0)
        return;
    let_go(held);
    char head[96];
    uint64_t paused_us = held->stopped_us ? now_us() - held->stopped_us : 0;
    snprintf(head, sizeof head, "%s\t%llu", verb, (unsigned long long)paused_us);
    held->since_us = held->until_us = 0;
    wire_send(out, head, NULL);
}

static void obey(struct held *held, struct wire *out, struct message *message) {
    const char *verb = message->fields[0];
    if (!strcmp(verb, "hold") && message->count == 2 && held->until_us == 0) {
        hold(held, out, message->fields[1]);
    } else if (!strcmp(verb, "call") && message->count == 6 && held->until_us != 0) {
        struct planned_call call = {
            .restorer = strtoull(message->fields[1], NULL, 16),
            .acquire = strtoull(message->fields[2], NULL, 16),
            .run = strtoull(message->fields[3], NULL, 16),
            .release = strtoull(message->fields[4], NULL, 16),
            .source = message->fields[5],
        };
        const char *refusal = plan_call(held, &call);
        wire_send(out, refusal ? "refused" : "calling", refusal);
    } else if (!strcmp(verb, "registers") && message->count == 1 && held->until_us != 0) {
        char *line = describe_registers(held);
        wire_write(out, line ? line : "registers\n", line ? strlen(line) : sizeof "registers\n" - 1);
        free(line);
    } else if (!strcmp(verb, "go") && message->count == 1) {
        release(held, out, "released");
    }
}

int hold_process(pid_t pid) {
    /* A separate group: the terminal's keys are for the reader. A guard stopped by them would keep the process
     * stopped. */
    setpgid(0, 0);
    sigset_t blocked;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGCHLD);
    sigprocmask(SIG_BLOCK, &blocked, NULL);
    signal(SIGPIPE, SIG_IGN);
    /* While a process is stopped, the guard must not wait behind other processes. Not every user may raise the
     * priority. */
    setpriority(PRIO_PROCESS, 0, -20);
    struct held held = {.pid = pid};
    struct wire in = {.fd = 0}, out = {.fd = 1};
    wire_send(&out, "ready", NULL);
    for (;;) {
        int timeout = -1;
        if (held.until_us) {
            uint64_t now = now_us();
            if (now >= held.until_us) {
                release(&held, &out, "lapsed");
                continue;
            }
            timeout = (int)((held.until_us - now + 999) / 1000);
        }
        struct pollfd wait = {.fd = in.fd, .events = POLLIN};
        if (poll(&wait, 1, timeout) <= 0)
            continue;
        bool open = wire_fill(&in);
        struct message message;
        while (wire_next(&in, &message)) {
            obey(&held, &out, &message);
            message_free(&message);
        }
        if (!open || held.loose) {
            release(&held, &out, "released");
            return 0; /* a task that was asked to stop and has not stopped yet: the kernel resumes it now */
        }
    }
}
