/* hold_call.c - three calls for a main thread that waits in the kernel, made as a signal would make them.
 *
 * An idle server runs no Python code, so a request that waits for Python code is never executed. Its main
 * thread is then in a system call, without the interpreter's lock. It is given what the kernel gives a thread
 * for a signal handler, a frame on its stack whose return path is rt_sigreturn, three times:
 *
 *      low    P1  restorer        <- stack pointer when PyGILState_Ensure begins
 *             u1  ucontext:  rip = PyRun_SimpleString, rdi = source, rsp = P2
 *             P2  restorer        <- stack pointer when PyRun_SimpleString begins
 *             u2  ucontext:  rip = PyGILState_Release, rdi = PyGILState_UNLOCKED, rsp = P3
 *             P3  restorer
 *             u3  ucontext:  the thread as it is now, its system call ended as by a handled signal
 *             source
 *             extended processor state (XSAVE), for all three
 *             128 bytes the interrupted function may use below its stack pointer
 *      high       the thread's own stack
 *
 * All of it is data on the thread's stack and one PTRACE_SETREGS: after that the thread needs nothing from
 * outside. If the guard or the reader is killed at any moment, the thread still completes all three calls.
 * Setting only the instruction pointer would break several things (a restarted system call, the error 514 that
 * would reach the program, floating point modes, the signal mask); here the kernel's own code restores them.
 */
#include "hold.h"

#include <cpuid.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <ucontext.h>
#include <unistd.h>

/* The kernel's own errors, from include/linux/errno.h: a program never sees them, only its tracer does. */
#define ERESTARTSYS 512
#define ERESTARTNOINTR 513
#define ERESTARTNOHAND 514
#define ERESTART_RESTARTBLOCK 516

#define RED_ZONE 128
#define CALLER_MODE_64 0x33 /* the code segment of 64-bit programs */
#define KERNEL_UCONTEXT 304 /* uc_flags to uc_sigmask: the part that rt_sigreturn reads */
#define STEP 320            /* from one P to the next: the return address, a ucontext, and alignment */
#define LARGEST_STATE 16384
#define LARGEST_SOURCE 4096
/* _fpx_sw_bytes at 464 of the XSAVE area, and the word after it: uapi/asm/sigcontext.h. */
#define SOFTWARE_BYTES 464
#define FP_XSTATE_MAGIC1 0x46505853u
#define FP_XSTATE_MAGIC2 0x46505845u
#define XSTATE_TILES (3ull << 17) /* AMX: not part of a thread's default state */
#define UC_FLAGS 7ul              /* UC_FP_XSTATE, UC_SIGCONTEXT_SS, UC_STRICT_RESTORE_SS */
#define STACK_AS_IT_IS 0x7fff     /* no valid ss_flags: rt_sigreturn does not change the alternate stack */

struct software_bytes {
    uint32_t magic1, extended_size;
    uint64_t features;
    uint32_t state_size, padding[7];
};

#ifndef SYS_epoll_pwait2
#define SYS_epoll_pwait2 441 /* Linux 5.11 */
#endif

/* System calls in which Python's main thread waits without its lock, and that may end with EINTR. */
static bool is_wait(long number) {
    switch (number) {
    case SYS_epoll_wait: case SYS_epoll_pwait: case SYS_poll: case SYS_ppoll:
    case SYS_select: case SYS_pselect6: case SYS_nanosleep: case SYS_clock_nanosleep:
    case SYS_futex: case SYS_accept: case SYS_accept4: case SYS_recvfrom: case SYS_recvmsg:
    case SYS_read: case SYS_wait4: case SYS_waitid: case SYS_pause: case SYS_rt_sigtimedwait:
    case SYS_rt_sigsuspend: case SYS_connect: case SYS_epoll_pwait2:
    case SYS_restart_syscall: /* one of these that was stopped before */
        return true;
    default:
        return false;
    }
}

/* The state in which the thread continues. Its call is repeated if the kernel would repeat it with the same
 * arguments after a handled signal or after none; it ends with EINTR if only that is correct. */
static bool after_signal(struct user_regs_struct *registers) {
    switch (-(long)registers->rax) {
    case ERESTARTSYS:
    case ERESTARTNOINTR:
    case ERESTARTNOHAND:
        registers->rax = registers->orig_rax;
        registers->rip -= 2; /* the length of `syscall` */
        return true;
    case ERESTART_RESTARTBLOCK: /* a relative time would start again */
    case EINTR:
        registers->rax = (unsigned long long)-EINTR;
        return true;
    default:
        return false; /* it has already ended, and its result must reach the program */
    }
}

/* Size of an XSAVE area in the standard format with `features`. */
static size_t state_size_of(uint64_t features) {
    size_t size = 576;
    for (unsigned i = 2; i < 63; i++) {
        unsigned length, offset, c, d;
        if (!(features >> i & 1) || !__get_cpuid_count(0xd, i, &length, &offset, &c, &d))
            continue;
        if (offset + length > size)
            size = offset + length;
    }
    return size;
}

/* The thread's extended state, in the form that rt_sigreturn expects. Returns its size, 0 on failure. */
static size_t read_state(pid_t tid, unsigned char *state) {
    struct iovec area = {.iov_base = state, .iov_len = LARGEST_STATE - 64};
    if (ptrace(PTRACE_GETREGSET, tid, NT_X86_XSTATE, &area) != 0 || area.iov_len < 576)
        return 0;
    uint64_t enabled, used;
    memcpy(&enabled, state + SOFTWARE_BYTES, sizeof enabled); /* xfeatures, as ptrace returns them */
    memcpy(&used, state + 512, sizeof used);
    if (used & XSTATE_TILES)
        return 0;
    enabled &= ~XSTATE_TILES;
    size_t size = state_size_of(enabled);
    if (size > area.iov_len)
        return 0;
    struct software_bytes software = {
        .magic1 = FP_XSTATE_MAGIC1,
        .extended_size = (uint32_t)size + 4,
        .features = enabled,
        .state_size = (uint32_t)size,
    };
    memcpy(state + SOFTWARE_BYTES, &software, sizeof software);
    uint32_t end = FP_XSTATE_MAGIC2;
    memcpy(state + size, &end, sizeof end);
    return size + sizeof end;
}

static void fill_context(unsigned char *at, const struct user_regs_struct *from, uint64_t rip,
                         uint64_t rdi, uint64_t rsp, uint64_t rax, uint64_t state, uint64_t mask) {
    ucontext_t context;
    memset(&context, 0, sizeof context);
    greg_t *r = context.uc_mcontext.gregs;
    context.uc_flags = UC_FLAGS;
    context.uc_stack.ss_flags = STACK_AS_IT_IS;
    r[REG_R8] = (greg_t)from->r8, r[REG_R9] = (greg_t)from->r9;
    r[REG_R10] = (greg_t)from->r10, r[REG_R11] = (greg_t)from->r11;
    r[REG_R12] = (greg_t)from->r12, r[REG_R13] = (greg_t)from->r13;
    r[REG_R14] = (greg_t)from->r14, r[REG_R15] = (greg_t)from->r15;
    r[REG_RSI] = (greg_t)from->rsi, r[REG_RBP] = (greg_t)from->rbp;
    r[REG_RBX] = (greg_t)from->rbx, r[REG_RDX] = (greg_t)from->rdx;
    r[REG_RCX] = (greg_t)from->rcx, r[REG_EFL] = (greg_t)from->eflags;
    r[REG_RAX] = (greg_t)rax, r[REG_RDI] = (greg_t)rdi;
    r[REG_RIP] = (greg_t)rip, r[REG_RSP] = (greg_t)rsp;
    r[REG_CSGSFS] = (greg_t)(from->cs | from->ss << 48);
    memcpy(at, &context, KERNEL_UCONTEXT - 8);
    memcpy(at + offsetof(ucontext_t, uc_mcontext) + sizeof(gregset_t), &state, sizeof state);
    memcpy(at + KERNEL_UCONTEXT - 8, &mask, sizeof mask);
}

/* Shadow stacks: a return address that no call pushed ends the program. */
static bool has_shadow_stack(pid_t pid) {
    char path[64], line[256];
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *file = fopen(path, "re");
    bool found = false;
    while (file && fgets(line, sizeof line, file))
        found = found || (!strncmp(line, "x86_Thread_features:", 20) && strstr(line, "shstk"));
    if (file)
        fclose(file);
    return found;
}

static bool write_memory(pid_t pid, uint64_t address, const void *bytes, size_t length) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/mem", (int)pid);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    bool good = fd >= 0 && pwrite(fd, bytes, length, (off_t)address) == (ssize_t)length;
    if (fd >= 0)
        close(fd);
    return good;
}

const char *plan_call(struct held *held, const struct planned_call *call) {
    const struct held_task *main_task = NULL;
    for (size_t i = 0; i < held->count; i++)
        if (held->tasks[i].tid == held->pid)
            main_task = &held->tasks[i];
    if (!main_task)
        return "its main thread has ended";
    if (!main_task->interrupted)
        return "its main thread is stopped, or about to take a signal";
    if (!call->restorer || !call->acquire || !call->run || !call->release)
        return "a function is missing";
    size_t length = strlen(call->source) + 1;
    if (length > LARGEST_SOURCE)
        return "the source is too long";
    if (has_shadow_stack(held->pid))
        return "its stacks are shadowed by the processor";

    struct user_regs_struct now, then;
    uint64_t mask;
    static _Alignas(64) unsigned char state[LARGEST_STATE];
    if (ptrace(PTRACE_GETREGS, held->pid, 0, &now) != 0 ||
        ptrace(PTRACE_GETSIGMASK, held->pid, sizeof mask, &mask) != 0)
        return "its registers cannot be read";
    if (now.cs != CALLER_MODE_64 || (long)now.orig_rax < 0 || !is_wait((long)now.orig_rax))
        return "its main thread does not wait in the kernel";
    then = now;
    if (!after_signal(&then))
        return "its main thread's wait has just ended";
    size_t state_size = read_state(held->pid, state);
    if (!state_size)
        return "its processor state cannot be kept";

    uint64_t state_at = (now.rsp - RED_ZONE - state_size) & ~63ull;
    uint64_t source_at = (state_at - length) & ~15ull;
    uint64_t first = source_at - 3 * STEP - 8; /* P1: 8 more than a multiple of 16, as after a `call` */
    size_t size = (size_t)(state_at + state_size - first);
    unsigned char *block = calloc(1, size);
    if (!block)
        return "no memory";
    for (int i = 0; i < 3; i++)
        memcpy(block + i * STEP, &call->restorer, 8);
    fill_context(block + 8, &now, call->run, source_at, first + STEP, 0, state_at, mask);
    fill_context(block + STEP + 8, &now, call->release, 1, first + 2 * STEP, 0, state_at, mask);
    fill_context(block + 2 * STEP + 8, &then, then.rip, then.rdi, then.rsp, then.rax, state_at, mask);
    memcpy(block + (source_at - first), call->source, length);
    memcpy(block + (state_at - first), state, state_size);
    bool good = write_memory(held->pid, first, block, size);
    free(block);
    if (!good)
        return "its stack cannot be written"; /* below the stack pointer, where the thread has no data */
    now.rip = call->acquire;
    now.rsp = first;
    now.rax = 0;
    now.orig_rax = (unsigned long long)-1; /* no system call to restart */
    now.eflags &= ~0x400ull;               /* the direction flag, as every function expects it */
    return ptrace(PTRACE_SETREGS, held->pid, 0, &now) == 0 ? NULL : "its registers cannot be written";
}
