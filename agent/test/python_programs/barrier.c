/* barrier.c - from the exit handlers on, this process may only end, write and return memory.
 *
 * An interpreter has ended when exit() calls its handlers; the destructors of libraries run after them. A
 * forbidden call ends the process with SIGSYS.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LET_THROUGH(number) \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static struct sock_filter filter[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    LET_THROUGH(SYS_exit_group),
    LET_THROUGH(SYS_exit),
    LET_THROUGH(SYS_write),
    LET_THROUGH(SYS_munmap),
    LET_THROUGH(SYS_brk),
    /* If the kernel has no page with the time, reading it is a system call; the CPU clock always is one. */
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clock_gettime, 0, 3),
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 1 /* CLOCK_MONOTONIC */, 0, 1),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
};

static void raise_barrier(void)
{
    struct sock_fprog program = {.len = sizeof filter / sizeof *filter, .filter = filter};
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        _exit(1); /* without it nothing would be reported */
}

/* 0, or the errno if the system has no filters. */
int bar_system_calls(void)
{
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL) != 0 && errno != EFAULT))
        return errno;
    return atexit(raise_barrier);
}
