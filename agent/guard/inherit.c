#include "guard.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

void inherited_take(struct inherited *inherited) {
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &inherited->mask);
    /* An ignored SIGCHLD would reap the program before its status was read. */
    struct sigaction standard = {.sa_handler = SIG_DFL};
    sigaction(SIGCHLD, &standard, &inherited->sigchld);
}

void inherited_give_back(const struct inherited *inherited) {
    sigaction(SIGCHLD, &inherited->sigchld, NULL);
    sigprocmask(SIG_SETMASK, &inherited->mask, NULL);
}

int descriptor_aside(int fd) {
    if (fd < 0 || fd > 2)
        return fd;
    int moved = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    int why = errno;
    close(fd);
    errno = why;
    return moved;
}

static bool kept(int fd, const int *keep, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (keep[i] == fd)
            return true;
    return false;
}

void close_descriptors_but(const int *keep, size_t count) {
    DIR *directory = opendir("/proc/self/fd");
    if (!directory)
        return;
    struct dirent *entry;
    while ((entry = readdir(directory))) {
        int fd = atoi(entry->d_name);
        if (fd > 2 && fd != dirfd(directory) && !kept(fd, keep, count))
            close(fd);
    }
    closedir(directory);
}

void release_inherited_descriptors(const int *keep, size_t count) {
    close_descriptors_but(keep, count);
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; fd < 2; fd++)
        if (nothing < 0 || dup2(nothing, fd) < 0)
            close(fd);
    if (nothing > 2)
        close(nothing);
}

/* Returns the limit that applies afterwards: none with CAP_SYS_RESOURCE, otherwise the hard limit. */
static rlim_t lift(int resource) {
    struct rlimit limit, none = {.rlim_cur = RLIM_INFINITY, .rlim_max = RLIM_INFINITY};
    if (getrlimit(resource, &limit) != 0 || setrlimit(resource, &none) == 0)
        return RLIM_INFINITY;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(resource, &limit);
    return limit.rlim_max;
}

void lift_limits(void) {
    lift(RLIMIT_AS);
    lift(RLIMIT_DATA);
    lift(RLIMIT_CPU);
}

unsigned long long address_space_available(void) {
    struct rlimit before;
    if (getrlimit(RLIMIT_AS, &before) != 0 || before.rlim_cur == RLIM_INFINITY)
        return RLIM_INFINITY;
    rlim_t lifted = lift(RLIMIT_AS);
    setrlimit(RLIMIT_AS, &before);
    return lifted;
}
