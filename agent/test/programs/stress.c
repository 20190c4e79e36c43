/* stress.c - threads x forks x dlopen x signals that allocate x small stacks, then exit() while threads still
 * run. Every block contains its own number; a wrong byte ends the program. */
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static _Atomic int stop;

static void fail(const char *what)
{
    fprintf(stderr, "# stress: %s\n", what);
    _exit(1);
}

static void *churn(void *argument)
{
    unsigned seed = (unsigned)(uintptr_t)argument;
    struct { unsigned char *start; size_t bytes; } blocks[128] = {{0}};
    while (!stop) {
        unsigned at = (unsigned)rand_r(&seed) % 128;
        size_t bytes = 1 + (size_t)rand_r(&seed) % (rand_r(&seed) % 100 ? 2000 : 300000);
        unsigned char mark = (unsigned char)at;
        if (blocks[at].start && (blocks[at].start[0] != mark || blocks[at].start[blocks[at].bytes - 1] != mark))
            fail("a block changed");
        switch (rand_r(&seed) % 5) {
        case 0: free(blocks[at].start), blocks[at].start = calloc(1, bytes); break;
        case 1: free(blocks[at].start), blocks[at].start = aligned_alloc(64, (bytes + 63) / 64 * 64); break;
        case 2: blocks[at].start = realloc(blocks[at].start, bytes); break;
        default: free(blocks[at].start), blocks[at].start = malloc(bytes);
        }
        if (!blocks[at].start)
            fail("no memory");
        blocks[at].start[0] = blocks[at].start[bytes - 1] = mark;
        blocks[at].bytes = bytes;
    }
    for (int i = 0; i < 128; i++)
        free(blocks[i].start);
    return NULL;
}

static void *brief(void *unused)
{
    return memset(malloc(100), 1, 100) ? (free(unused), NULL) : NULL;
}

static void on_signal(int number)
{
    static _Atomic int busy;
    (void)number;
    if (!busy++) {
        void *mapped = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (mapped != MAP_FAILED)
            munmap(mapped, 1 << 20);
    }
    busy--;
}

int main(void)
{
    enum { THREADS = 6 };
    pthread_t threads[THREADS];
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigaction(SIGPROF, &action, NULL);
    setitimer(ITIMER_PROF, &(struct itimerval){{0, 3000}, {0, 3000}}, NULL);
    for (uintptr_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, churn, (void *)(i + 1));
    for (int round = 0; round < 60; round++) {
        pid_t pid = fork();
        if (pid == 0) {
            void *block = malloc(1 << 20);
            memset(block, 7, 1 << 20);
            free(block);
            round % 2 ? _exit(0) : exit(0);
        }
        int status;
        if (waitpid(pid, &status, 0) != pid || status != 0)
            fail("a child failed");
        void *library = dlopen("libm.so.6", RTLD_NOW | RTLD_LOCAL);
        if (library)
            dlclose(library);
        pthread_attr_t small;
        pthread_t thread;
        pthread_attr_init(&small);
        pthread_attr_setstacksize(&small, PTHREAD_STACK_MIN);
        if (pthread_create(&thread, &small, brief, malloc(10)) == 0)
            pthread_join(thread, NULL);
        if (system("exit 3") >> 8 != 3)
            fail("system()");
    }
    setitimer(ITIMER_PROF, &(struct itimerval){{0, 0}, {0, 0}}, NULL);
    for (int i = 0; i < THREADS / 2; i++)
        pthread_detach(threads[i]);
    puts("fine");
    exit(0); /* the threads keep running during our destructor */
}
