/* tidemark-guard host [--] RECORDER ARGS... : see docs/spine.md, "Guard and recorder".
 * tidemark-guard hold PID : see hold.c.
 * tidemark-guard keep : see keep.c.
 * tidemark-guard events : see events.c. */
#include "guard.h"
#include "hold.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

/* Node reserves this much address space before it does anything. */
#define RECORDER_ADDRESS_SPACE (1024ull << 20)

struct guard {
    struct inherited inherited;
    struct wire wire; /* fd -1 once the recorder's end is closed */
    int signals;
    int pool; /* -1: none */
    char *orphan_path;
    char **recorder_arguments;
    char **environment; /* a copy of what the shell set, for the recorder */
    pid_t recorder; /* 0: reaped */
    pid_t program;  /* 0: not started, or ended */
    pid_t witness;
    bool started, ended;
    bool alone;     /* memory is short, so the recorder has left the program to the guard */
    bool completes; /* a second recorder completes the recording */
    int program_status, recorder_status;
    int64_t ended_ms; /* of the program, in ms of CLOCK_MONOTONIC */
    struct rusage usage; /* of the program, when it has ended */
    int leave_code; /* -1: not received */
    struct termios terminal; /* as the program left it */
    bool terminal_known, terminal_lent;
};

static void fail(const char *what) {
    fprintf(stderr, "tidemark-guard: %s: %s\n", what, strerror(errno));
    exit(1);
}

/* Ends in the same way as a child with this wait status, so that a process that waits for the guard sees the same. */
static void leave_as(int status) {
    if (!WIFSIGNALED(status))
        _exit(WEXITSTATUS(status));
    int number = WTERMSIG(status);
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0}); /* only the program's core dump is of interest */
    signal(number, SIG_DFL);
    sigset_t only;
    sigemptyset(&only);
    sigaddset(&only, number);
    raise(number);
    sigprocmask(SIG_UNBLOCK, &only, NULL);
    _exit(128 + number); /* signals do not end the first process of a pid namespace */
}

static char **copied_environment(void) {
    size_t count = 0;
    while (environ[count])
        count++;
    char **copy = malloc((count + 1) * sizeof *copy);
    return copy ? memcpy(copy, environ, (count + 1) * sizeof *copy) : environ;
}

/* False with errno if it could not be started. */
static bool start_recorder(struct guard *guard) {
    char **arguments = guard->recorder_arguments;
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return false;
    for (int i = 0; i < 2; i++)
        if ((ends[i] = descriptor_aside(ends[i])) < 0)
            return false;
    guard->recorder = fork();
    if (guard->recorder < 0) {
        guard->recorder = 0;
        close(ends[0]);
        close(ends[1]);
        return false;
    }
    if (guard->recorder == 0) {
        /* A separate group: keys typed at the terminal, and a program that kills its group, do not affect it. */
        setpgid(0, 0);
        environ = guard->environment;
        char number[16];
        snprintf(number, sizeof number, "%d", ends[1]);
        setenv("TIDEMARK_GUARD_FD", number, 1);
        if (guard->completes)
            setenv("TIDEMARK_COMPLETES", guard->orphan_path, 1);
        else
            unsetenv("TIDEMARK_COMPLETES");
        close_descriptors_but(&ends[1], 1);
        fcntl(ends[1], F_SETFD, 0);
        /* The program's input and output are not the recorder's, which must not keep their pipes open. */
        int nothing = open("/dev/null", O_RDWR);
        if (nothing >= 0 && nothing != 0)
            dup2(nothing, 0);
        if (nothing > 2)
            close(nothing);
        if (dup2(2, 1) < 0)
            dup2(0, 1);
        inherited_give_back(&guard->inherited);
        lift_limits();
        execvp(arguments[0], arguments);
        fprintf(stderr, "tidemark-guard: cannot run %s: %s\n", arguments[0], strerror(errno));
        _exit(errno == ENOENT ? 127 : 126);
    }
    close(ends[1]);
    guard->wire.fd = ends[0];
    return true;
}

static unsigned long long start_ticks(pid_t pid) {
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    text[got > 0 ? got : 0] = '\0';
    char *at = strrchr(text, ')'); /* the name before it may contain anything */
    for (int field = 2; at && field < 22; field++)
        at = strchr(at + 1, ' ');
    return at ? strtoull(at, NULL, 10) : 0;
}

/* Starts the program: fork, undo what the guard changed, exec. An errno is returned through a pipe that a
 * successful exec closes. */
static void start_program(struct guard *guard, char **arguments) {
    int report[2];
    if (pipe2(report, O_CLOEXEC) != 0)
        report[0] = report[1] = -1;
    pid_t pid = report[0] < 0 ? -1 : fork();
    int why = errno;
    if (pid == 0) {
        prctl(PR_SET_PTRACER, (unsigned long)guard->recorder, 0, 0, 0); /* EINVAL without Yama */
        inherited_give_back(&guard->inherited);
        execvp(arguments[0], arguments);
        why = errno;
        ssize_t ignored = write(report[1], &why, sizeof why);
        (void)ignored;
        _exit(127);
    }
    if (report[1] >= 0)
        close(report[1]);
    if (pid > 0) {
        ssize_t got;
        do
            got = read(report[0], &why, sizeof why);
        while (got < 0 && errno == EINTR);
        if (got == sizeof why) {
            waitpid(pid, NULL, 0);
            pid = -1;
        }
    }
    if (report[0] >= 0)
        close(report[0]);
    char head[96];
    if (pid < 0) {
        snprintf(head, sizeof head, "failed\t%d", why);
        wire_send(&guard->wire, head, strerror(why));
        return;
    }
    guard->program = pid;
    guard->started = true;
    int own[] = {guard->wire.fd, guard->signals, guard->pool};
    release_inherited_descriptors(own, 3);
    snprintf(head, sizeof head, "started\t%d\t%llu", (int)pid, start_ticks(pid));
    wire_send(&guard->wire, head, NULL);
}

static void make_pool(struct guard *guard, struct message *message) {
    char head[96];
    guard->pool = pool_create((uint32_t)strtoul(message->fields[1], NULL, 10),
                              strtoull(message->fields[2], NULL, 10),
                              (uint32_t)strtoul(message->fields[3], NULL, 10));
    if (guard->pool < 0) {
        snprintf(head, sizeof head, "nopool\t%d", errno);
        wire_send(&guard->wire, head, strerror(errno));
        return;
    }
    snprintf(head, sizeof head, "pool\t%d\t%d", (int)getpid(), guard->pool);
    wire_send(&guard->wire, head, NULL);
}

static void obey(struct guard *guard, struct message *message) {
    const char *verb = message->fields[0];
    if (!strcmp(verb, "pool") && message->count == 4 && guard->pool < 0)
        make_pool(guard, message);
    else if (!strcmp(verb, "orphan") && message->count == 2) {
        free(guard->orphan_path);
        guard->orphan_path = message->fields[1][0] ? strdup(message->fields[1]) : NULL;
    } else if (!strcmp(verb, "env") && message->count == 3)
        setenv(message->fields[1], message->fields[2], 1);
    else if (!strcmp(verb, "exec") && message->count >= 2 && !guard->started)
        start_program(guard, message->fields + 1);
    else if (!strcmp(verb, "alone") && guard->started && !guard->completes)
        guard->alone = true;
    else if (!strcmp(verb, "leave") && message->count == 2)
        guard->leave_code = atoi(message->fields[1]) & 255;
}

/* Stops in the same way as the program, so that a shell with job control sees it; fg and bg wake both. */
static void stop_like(struct guard *guard, int number) {
    if (number == SIGSTOP) {
        raise(SIGSTOP);
    } else {
        struct sigaction before, standard = {.sa_handler = SIG_DFL};
        sigaction(number, &standard, &before);
        sigset_t only;
        sigemptyset(&only);
        sigaddset(&only, number);
        raise(number);
        sigprocmask(SIG_UNBLOCK, &only, NULL);
        sigprocmask(SIG_BLOCK, &only, NULL);
        sigaction(number, &before, NULL);
    }
    kill(guard->program, SIGCONT); /* no effect on a process that the group's SIGCONT has already woken */
}

/* From now on, the foreground group prints what the recorder prints and receives Ctrl-C, and `stty tostop`
 * applies to it. */
static void lend_terminal(struct guard *guard) {
    if (guard->recorder && tcgetpgrp(2) == getpgrp())
        guard->terminal_lent = tcsetpgrp(2, guard->recorder) == 0;
}

static void report_end(struct guard *guard) {
    const struct rusage *usage = &guard->usage;
    char head[160];
    snprintf(head, sizeof head, "exited\t%d\t%ld\t%ld\t%ld\t%lld", guard->program_status, usage->ru_maxrss,
             usage->ru_utime.tv_sec * 1000L + usage->ru_utime.tv_usec / 1000,
             usage->ru_stime.tv_sec * 1000L + usage->ru_stime.tv_usec / 1000, (long long)guard->ended_ms);
    if (guard->wire.fd >= 0)
        wire_send(&guard->wire, head, NULL);
}

static void program_ended(struct guard *guard, int status, const struct rusage *usage) {
    guard->program = 0;
    guard->ended = true;
    guard->program_status = status;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    guard->ended_ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
    guard->usage = *usage;
    guard->terminal_known = tcgetattr(2, &guard->terminal) == 0;
    lend_terminal(guard);
    report_end(guard);
}

static void reap(struct guard *guard) {
    int status;
    struct rusage usage;
    pid_t pid;
    while ((pid = wait4(-1, &status, WNOHANG | WUNTRACED, &usage)) > 0) {
        if (pid == guard->program && WIFSTOPPED(status)) {
            stop_like(guard, WSTOPSIG(status));
        } else if (pid == guard->program) {
            program_ended(guard, status, &usage);
        } else if (pid == guard->recorder && WIFSTOPPED(status)) {
            kill(pid, SIGCONT); /* no shell knows that group, so no other process would do it */
        } else if (pid == guard->recorder) {
            guard->recorder = 0;
            guard->recorder_status = status;
        }
    }
}

static void hear(struct guard *guard, const struct signalfd_siginfo *info) {
    int number = (int)info->ssi_signo;
    if (number == SIGCHLD) {
        reap(guard);
        return;
    }
    if (number == SIGXFSZ || number == SIGPIPE || number == SIGCONT)
        return; /* caused by the guard itself, or passed on by waking up */
    if (info->ssi_code > 0)
        return; /* from the terminal or the kernel: the whole group has received it */
    if (guard->program) {
        if (!witness_saw(&guard->witness, number) && guard->program)
            kill(guard->program, number);
    } else if (number == SIGINT || number == SIGTERM || number == SIGHUP || number == SIGQUIT) {
        /* Only the recorder runs (any more), so the signal is a request to exit. */
        if (guard->recorder)
            kill(guard->recorder, SIGTERM);
        if (!guard->started)
            leave_as(number); /* a bare number is the wait status "ended by that signal" */
    }
}

static void recorder_closed(struct guard *guard) {
    close(guard->wire.fd);
    guard->wire.fd = -1;
    guard->wire.length = 0;
}

/* The program has ended, and its memory is free: the recorder that had left it to the guard completes the
 * recording. False if there is nothing to complete. The pool is kept in case that recorder crashes. */
static bool complete(struct guard *guard) {
    if (!guard->alone || guard->completes || guard->pool < 0 || !guard->orphan_path || !guard->ended)
        return false;
    guard->completes = true;
    if (pool_save(guard->pool, guard->orphan_path) || !start_recorder(guard))
        return false;
    lend_terminal(guard);
    report_end(guard);
    return true;
}

/* The program has ended, and the recorder has exited or crashed: save what it could not save, and exit. */
static void finish(struct guard *guard) {
    if (guard->leave_code < 0 && guard->pool >= 0 && guard->orphan_path && guard->started) {
        int why = pool_save(guard->pool, guard->orphan_path);
        if (why)
            dprintf(2, "tidemark: the recorder died, and %s could not be written: %s\n",
                    guard->orphan_path, strerror(why));
    }
    kill(guard->witness, SIGKILL);
    if (guard->terminal_known) {
        if (guard->terminal_lent)
            tcsetpgrp(2, getpgrp());
        tcsetattr(2, TCSANOW, &guard->terminal); /* Node restores the terminal settings that it found at its start */
    }
    if (!guard->started)
        leave_as(guard->leave_code >= 0 ? guard->leave_code << 8 : guard->recorder_status);
    bool same = guard->leave_code < 0 || (WIFSIGNALED(guard->program_status) &&
                                          guard->leave_code == 128 + WTERMSIG(guard->program_status));
    leave_as(same ? guard->program_status : guard->leave_code << 8);
}

static void serve(struct guard *guard) {
    for (;;) {
        /* Before a start, the recorder's own exit status is the answer, so wait for it. */
        bool gave_up = guard->started && guard->wire.fd < 0 && guard->leave_code < 0;
        bool recorder_done = guard->recorder == 0 || gave_up;
        if (recorder_done && guard->wire.fd < 0 && !guard->program && !complete(guard))
            finish(guard);
        struct pollfd waits[2] = {{.fd = guard->signals, .events = POLLIN},
                                  {.fd = guard->wire.fd, .events = POLLIN}};
        if (poll(waits, 2, -1) < 0 && errno != EINTR)
            fail("cannot wait");
        /* Process the recorder's last reports before its end. */
        if (waits[1].revents) {
            bool open = wire_fill(&guard->wire);
            struct message message;
            while (wire_next(&guard->wire, &message)) {
                obey(guard, &message);
                message_free(&message);
            }
            if (!open)
                recorder_closed(guard);
        }
        struct signalfd_siginfo info;
        if (waits[0].revents && read(guard->signals, &info, sizeof info) == sizeof info)
            hear(guard, &info);
    }
}

/* There is no memory for a recorder: the program runs as if it had been started alone. */
static int run_unrecorded(char **arguments, unsigned long long room) {
    while (*arguments && strcmp(*arguments, "--") != 0)
        arguments++;
    char **program = *arguments ? arguments + 1 : arguments;
    fprintf(stderr,
            "tidemark: %s: ulimit -v leaves %llu MiB of address space, and the recorder needs %llu MiB; to bound "
            "the program alone: tidemark run -- sh -c 'ulimit -v N; exec \"$@\"' sh PROGRAM\n",
            *program ? "not recorded" : "nothing was run", room >> 20, RECORDER_ADDRESS_SPACE >> 20);
    if (!*program)
        return 4;
    execvp(program[0], program);
    int why = errno;
    fprintf(stderr, "tidemark: cannot run %s: %s\n", program[0], strerror(why));
    return why == ENOENT ? 127 : 126;
}

int main(int count, char **arguments) {
    if (count == 3 && !strcmp(arguments[1], "hold") && atoi(arguments[2]) > 0)
        return hold_process(atoi(arguments[2]));
    if (count == 2 && !strcmp(arguments[1], "keep"))
        return keep_pool();
    if (count == 2 && !strcmp(arguments[1], "events"))
        return report_events();
    char **recorder = arguments + 2;
    if (count > 2 && !strcmp(recorder[0], "--"))
        recorder++;
    if (count < 3 || strcmp(arguments[1], "host") != 0 || !*recorder) {
        fprintf(stderr, "usage: tidemark-guard host [--] RECORDER ARGS...\n"
                        "       tidemark-guard hold PID\n"
                        "       tidemark-guard keep\n"
                        "       tidemark-guard events\n");
        return 2;
    }
    unsigned long long room = address_space_available();
    if (room < RECORDER_ADDRESS_SPACE)
        return run_unrecorded(recorder, room);
    static struct guard guard = {.pool = -1, .leave_code = -1};
    guard.recorder_arguments = recorder;
    guard.environment = copied_environment();
    inherited_take(&guard.inherited);
    sigset_t all;
    sigfillset(&all);
    guard.signals = descriptor_aside(signalfd(-1, &all, SFD_CLOEXEC));
    if (guard.signals < 0)
        fail("cannot listen for signals");
    guard.witness = witness_start();
    if (!start_recorder(&guard))
        fail("cannot start the recorder");
    serve(&guard);
}
