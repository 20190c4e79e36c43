/* behaviour.c - prints what a program can observe of its environment; run.sh compares the
 * output with and without the agent, byte by byte. */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void descriptors(const char *when)
{
    printf("%s:", when);
    for (int fd = 0; fd < 2000; fd++)
        if (fcntl(fd, F_GETFD) >= 0)
            printf(" %d", fd);
    printf("\n");
}

static void dispositions(void)
{
    for (int number = 1; number < 32; number++) {
        struct sigaction action;
        if (sigaction(number, NULL, &action) == 0 && action.sa_handler != SIG_DFL)
            printf("signal %d\n", number);
    }
    sigset_t mask;
    sigprocmask(SIG_SETMASK, NULL, &mask);
    for (int number = 1; number < 32; number++)
        if (sigismember(&mask, number))
            printf("blocked %d\n", number);
}

static void symbols(void)
{
    void *libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
    void *(*allocate)(size_t) = (void *(*)(size_t))dlsym(libc, "malloc");
    void (*release)(void *) = (void (*)(void *))dlsym(libc, "free");
    release(allocate(100000));
    printf("strlen %d\n", dlsym(libc, "strlen") != NULL);
    dlerror();
    void *missing = dlsym(libc, "no_such_name");
    const char *why = dlerror();
    printf("missing %d %s\n", missing != NULL, why && strstr(why, "no_such_name") ? "told" : "not");
    printf("default %d next %d\n", dlsym(RTLD_DEFAULT, "malloc") == (void *)malloc, dlsym(RTLD_NEXT, "main") != NULL);
    void *(*below)(size_t) = (void *(*)(size_t))dlsym(RTLD_NEXT, "malloc");
    free(below(1000));
    errno = 42;
    free(malloc(5000000));
    printf("errno %d\n", errno);
}

int main(void)
{
    descriptors("descriptors");
    dispositions();
    symbols();
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    printf("files %lu umask %o\n", (unsigned long)limit.rlim_cur, umask(0));
    for (int fd = 3; fd < 2000; fd++)
        close(fd);
    fflush(stdout);
    if (chdir("/") != 0)
        return 1;
    for (int i = 0; i < 100; i++)
        free(malloc(100000));
    int first = open("/dev/null", O_RDONLY);
    printf("first descriptor %d\n", first);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        for (int i = 0; i < 100; i++)
            free(malloc(100000));
        descriptors("child");
        fflush(stdout);
        _exit(0);
    }
    waitpid(pid, NULL, 0);
    free(realloc(malloc(10), 1000000));
    return 0;
}
