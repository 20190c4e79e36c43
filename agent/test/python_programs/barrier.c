/* barrier.c - from the exit handlers on, this process may end, write and give memory back, and no more.
 *
 * By the time exit() calls its handlers an interpreter has ended; the destructors of libraries come after them.
 * A call that is not let through ends the process with SIGSYS.
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
    /* Where the kernel has no page that tells the time, reading it is a call; the CPU's clock is one everywhere. */
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
        _exit(1); /* without it nothing would be told */
}

/* 0, or the error number where the system has no filters to give. */
int bar_system_calls(void)
{
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL) != 0 && errno != EFAULT))
        return errno;
    return atexit(raise_barrier);
}
