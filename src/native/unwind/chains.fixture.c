/* Threads that stand in known chains of calls: the truth for the unwinder's tests. Each is named as the chain
 * that it is in; "ready" is printed when all were started, and the program ends with its standard input.
 *
 * Built without frame pointers, so only call frame information shows which function called which. */
#define _GNU_SOURCE
#include <alloca.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define CALLED __attribute__((noinline, noclone))
/* After a call: keeps the compiler from jumping where it should call. */
#define RETURNS __asm__ volatile("" ::: "memory")

static void CALLED sleeps(void) {
    for (;;) {
        nanosleep(&(struct timespec){.tv_sec = 1000}, NULL);
        RETURNS;
    }
}

/* nested */
static void CALLED nested_inner(int n) { sleeps(); RETURNS; (void)n; }
static int CALLED nested_middle(int n) { char kept[200]; memset(kept, n, sizeof kept); RETURNS; nested_inner(n); RETURNS; return kept[n]; }
static void *nested(void *unused) { nested_middle(3); RETURNS; return unused; }

/* frames whose size is known at run time only, that are aligned, that are large */
static int CALLED with_alloca(size_t n) { volatile char *room = alloca(n); room[n - 1] = 1; sleeps(); RETURNS; return room[0]; }
static int CALLED with_alignment(int n) { _Alignas(64) volatile char kept[64]; kept[n] = 1; with_alloca((size_t)n * 100); RETURNS; return kept[0]; }
static int CALLED with_both(size_t n) { _Alignas(64) volatile char kept[128]; volatile char *room = alloca(n); room[0] = kept[1] = 2; with_alignment(9); RETURNS; return room[0] + kept[0]; }
static int CALLED with_large_frame(int n) { volatile char kept[100000]; kept[n] = 1; with_both((size_t)n * 7); RETURNS; return kept[1]; }
static void *frames(void *unused) { with_large_frame(5); RETURNS; return unused; }

/* arguments on the stack, registers saved */
static long CALLED with_arguments(long a, long b, long c, long d, long e, long f, long g, long h, long i) { sleeps(); RETURNS; return a + b * c - d + e * f - g * h + i; }
static long CALLED saves_registers(long x) {
    long sum = 0;
    for (long i = 0; i < x; i++)
        sum += with_arguments(i, x, sum, i + 1, x + 1, sum + 1, i ^ x, x ^ sum, i * 3);
    return sum;
}
static void *arguments(void *unused) { saves_registers(100); RETURNS; return unused; }

/* through the C library and back */
static int CALLED compares(const void *a, const void *b) { sleeps(); RETURNS; return *(const int *)a - *(const int *)b; }
static void CALLED sorts(void) { int numbers[] = {3, 1, 2}; qsort(numbers, 3, sizeof *numbers, compares); RETURNS; }
static void *callback(void *unused) { sorts(); RETURNS; return unused; }

/* blocked in other calls of the kernel */
static void CALLED polls(void) { struct epoll_event event; int fd = epoll_create1(0); while (epoll_wait(fd, &event, 1, -1)) RETURNS; /* EINTR after each stop */ }
static void *polling(void *unused) { polls(); RETURNS; return unused; }
static pthread_mutex_t taken = PTHREAD_MUTEX_INITIALIZER;
static void CALLED locks(void) { pthread_mutex_lock(&taken); RETURNS; }
static void *locking(void *unused) { locks(); RETURNS; return unused; }
static void CALLED reads(int fd) { char byte; if (read(fd, &byte, 1) < 0) abort(); RETURNS; }
static void *reading(void *unused) { int ends[2]; if (pipe(ends)) abort(); reads(ends[0]); RETURNS; return unused; }

/* a signal's handler, on the thread's stack and on one of its own; what it interrupts has no frame at all */
static volatile int interrupted_runs[2];
static void CALLED handles_inner(void) { sleeps(); RETURNS; }
static void handles(int number) { (void)number; handles_inner(); RETURNS; }
static void CALLED interrupted_leaf(volatile int *runs) { for (;;) ++*runs; }
static void CALLED interrupted_outer(int which) { volatile int kept[100] = {which}; interrupted_leaf(&interrupted_runs[which]); RETURNS; (void)kept[1]; }
static void *handler(void *unused) { interrupted_outer(0); RETURNS; return unused; }
static void *ownstack(void *unused) {
    size_t size = 1 << 16;
    stack_t own = {.ss_sp = malloc(size), .ss_size = size};
    sigaltstack(&own, NULL);
    interrupted_outer(1);
    RETURNS;
    return unused;
}
static void CALLED interrupt(pthread_t thread, int which, int number) {
    while (interrupted_runs[which] == 0)
        usleep(1000);
    pthread_kill(thread, number);
}

/* code made at run time, which nothing describes */
typedef void (*caller)(void (*)(void));
static caller make_code(const unsigned char *bytes, size_t length) {
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(page, bytes, length);
    mprotect(page, 4096, PROT_READ | PROT_EXEC);
    return (caller)(uintptr_t)page;
}
static void CALLED calls_trampoline(void) {
    /* sub $8, %rsp; call *%rdi; add $8, %rsp; ret */
    static const unsigned char code[] = {0x48, 0x83, 0xec, 8, 0xff, 0xd7, 0x48, 0x83, 0xc4, 8, 0xc3};
    make_code(code, sizeof code)(sleeps);
    RETURNS;
}
static void *trampoline(void *unused) { calls_trampoline(); RETURNS; return unused; }
static void CALLED calls_frame_pointer(void) {
    /* push %rbp; mov %rsp, %rbp; sub $48, %rsp; call *%rdi; xor %eax, %eax; leave; ret */
    static const unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 48, 0xff, 0xd7, 0x31, 0xc0, 0xc9, 0xc3};
    make_code(code, sizeof code)(sleeps);
    RETURNS;
}
static void *framepointer(void *unused) { calls_frame_pointer(); RETURNS; return unused; }

/* assembly without a description, as mathematical kernels are written: an aligned stack, loops, a jump ahead */
__asm__(".text; .type assembly_kernel, @function; assembly_kernel:\n"
        "push %rbx; push %rbp; mov %rsp, %rax; sub $200, %rsp; and $-64, %rsp; mov %rax, 128(%rsp)\n"
        "mov %rdi, %rbx; mov $3, %ebp\n"
        "1: vpxor %xmm1, %xmm1, %xmm1; call *%rbx; test %eax, %eax; js 3f\n"
        "2: sub $1, %ebp; jnz 1b; jmp 4f\n"
        "3: mov $7, %ebp; jmp 2b\n"
        "4: mov 128(%rsp), %rsp; pop %rbp; pop %rbx; ret\n"
        ".size assembly_kernel, . - assembly_kernel");
void assembly_kernel(void (*)(void));
static void CALLED calls_assembly(void) { assembly_kernel(sleeps); RETURNS; }
static void *assembly(void *unused) { calls_assembly(); RETURNS; return unused; }

/* deeper than what is copied */
static int CALLED recurses(int n) { volatile char kept[64]; kept[0] = 1; if (n == 0) sleeps(); else kept[1] = (char)recurses(n - 1); RETURNS; return kept[0]; }
static void *deep(void *unused) { recurses(40000); RETURNS; return unused; }

static pthread_t begin(const char *name, void *(*run)(void *)) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, run, NULL))
        abort();
    pthread_setname_np(thread, name);
    return thread;
}

int main(void) {
    struct sigaction action = {.sa_handler = handles};
    sigaction(SIGUSR1, &action, NULL);
    action.sa_flags = SA_ONSTACK;
    sigaction(SIGUSR2, &action, NULL);
    pthread_mutex_lock(&taken);
    begin("nested", nested), begin("frames", frames), begin("arguments", arguments);
    begin("callback", callback), begin("polling", polling), begin("locking", locking);
    begin("reading", reading), begin("trampoline", trampoline), begin("framepointer", framepointer);
    begin("assembly", assembly), begin("deep", deep);
    interrupt(begin("handler", handler), 0, SIGUSR1);
    interrupt(begin("ownstack", ownstack), 1, SIGUSR2);
    puts("ready");
    fflush(stdout);
    reads(0);
    return 0;
}
