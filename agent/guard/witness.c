#include "guard.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

/* A supervisor may signal the guard alone (docker stop) or everyone (kill -TERM -GROUP, systemd). In the second
 * case the program has already received its signal, and a forwarded copy would be one too many. The siginfo
 * does not distinguish the two; a process that only collects signals does. */
pid_t witness_start(void) {
    pid_t guard = getpid();
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NAME, "tidemark-group");
    if (getppid() != guard)
        _exit(0);
    close_descriptors_but(NULL, 0);
    for (int fd = 0; fd < 3; fd++)
        close(fd);
    for (;;)
        pause(); /* everything is blocked: only SIGKILL ends it */
}

static bool pending(pid_t pid, int number) {
    char path[64], text[4096];
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t got = read(fd, text, sizeof text - 1);
    close(fd);
    text[got > 0 ? got : 0] = '\0';
    const char *line = strstr(text, "\nShdPnd:");
    return line && (strtoull(line + 8, NULL, 16) >> (number - 1) & 1);
}

bool witness_saw(pid_t *witness, int number) {
    /* A sender that walks a list of processes needs a moment to reach this one. */
    for (int i = 0; i < 10; i++) {
        if (pending(*witness, number)) {
            kill(*witness, SIGKILL);
            *witness = witness_start();
            return true;
        }
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    }
    return false;
}
