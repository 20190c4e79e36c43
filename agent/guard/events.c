/* events.c - tidemark-guard events: the starts and ends of processes, as the kernel reports them.
 *
 * The kernel's process connector (Documentation/driver-api/connector.rst, include/uapi/linux/cn_proc.h) sends a message
 * for each fork, exec and exit of the host. It needs the host's network, pid and user namespaces, and CAP_NET_ADMIN before
 * Linux 6.6. One line for each event that matters to a collector:
 *
 *   ready                  the kernel sends events
 *   exec PID               a process became a program whose file is named like a Python interpreter
 *   exit PID STATUS AT     a process ended, with its wait status (WIFSIGNALED and so on), whoever its parent is; AT: when,
 *                          in ms of CLOCK_MONOTONIC
 *   lost                   the kernel dropped events, because they were not read in time
 *
 * Lines are written together, at most five times a second, and none waits much longer than a fifth of a second. It ends when its standard input does: with the collector.
 * Exit status: 0, or 1 with the errno on standard output (`refused ERRNO`) if there are no events here. */
#include "guard.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/cn_proc.h>
#include <linux/connector.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* Room for a burst of a few ten thousand events between two reads. */
#define RECEIVE_BYTES (8 << 20)
#define FLUSH_MS 200
/* Events that arrive together are read together; a program that has just started still has its name then. */
#define GATHER_MS 10

struct listen_request {
    struct nlmsghdr head;
    struct cn_msg connector;
    enum proc_cn_mcast_op operation;
} __attribute__((packed));

/* Where a field of an event stands in a message. A filter loads words in network order. */
#define EVENT_AT(field) (NLMSG_HDRLEN + offsetof(struct cn_msg, data) + offsetof(struct proc_event, field))
#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, EVENT_AT(field))
#define IF_EQUAL(value, yes, no) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, htonl(value), yes, no)

/* Forks and ends of threads, of which a busy host has hundreds a second, do not wake this process. Where the kernel takes
 * no filter, print_event drops them. */
static void leave_out_threads_and_forks(int fd) {
    struct sock_filter steps[] = {
        LOAD(what),
        IF_EQUAL(PROC_EVENT_NONE, 6, 0),
        IF_EQUAL(PROC_EVENT_EXEC, 5, 0),
        IF_EQUAL(PROC_EVENT_EXIT, 0, 5),
        LOAD(event_data.exit.process_pid),
        BPF_STMT(BPF_MISC | BPF_TAX, 0),
        LOAD(event_data.exit.process_tgid),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_X, 0, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, UINT32_MAX), /* the whole message */
        BPF_STMT(BPF_RET | BPF_K, 0),
    };
    struct sock_fprog filter = {.len = sizeof steps / sizeof *steps, .filter = steps};
    setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter);
}

/* The answer to a request goes to every listener of the host, as events do. Ours carries this number plus one, so that a guard
 * in another pid namespace, which gets no answer of its own, does not take another listener's for it: the pids of its
 * events would be those of other processes. */
static uint32_t own_request;
static bool is_answered;

static int listen_to_kernel(void) {
    int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_CONNECTOR);
    if (fd < 0)
        return -1;
    int bytes = RECEIVE_BYTES;
    if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof bytes) < 0)
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
    leave_out_threads_and_forks(fd);
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    own_request = ((uint32_t)getpid() << 16) ^ (uint32_t)now.tv_nsec;
    struct sockaddr_nl address = {.nl_family = AF_NETLINK, .nl_groups = CN_IDX_PROC};
    struct listen_request request = {
        .head = {.nlmsg_len = sizeof request, .nlmsg_type = NLMSG_DONE},
        .connector = {.id = {CN_IDX_PROC, CN_VAL_PROC}, .ack = own_request, .len = sizeof request.operation},
        .operation = PROC_CN_MCAST_LISTEN,
    };
    if (bind(fd, (struct sockaddr *)&address, sizeof address) < 0 ||
        send(fd, &request, sizeof request, 0) != (ssize_t)sizeof request) {
        int why = errno;
        close(fd);
        errno = why;
        return -1;
    }
    return fd;
}

static bool is_python(int pid) {
    char link[32], path[4096];
    snprintf(link, sizeof link, "/proc/%d/exe", pid);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length <= 0)
        return false;
    path[length] = 0;
    const char *name = strrchr(path, '/');
    return name && strncmp(name + 1, "python", 6) == 0;
}

/* False if the kernel refuses: its first answer carries an errno. */
static bool print_event(const struct proc_event *event) {
    switch ((unsigned)event->what) {
    case PROC_EVENT_NONE:
        if (event->event_data.ack.err) {
            printf("refused %u\n", event->event_data.ack.err);
            return false;
        }
        is_answered = true;
        puts("ready");
        break;
    case PROC_EVENT_EXEC:
        if (is_python(event->event_data.exec.process_tgid))
            printf("exec %d\n", event->event_data.exec.process_tgid);
        break;
    case PROC_EVENT_EXIT: /* of a process, not of one of its threads */
        if (event->event_data.exit.process_pid == event->event_data.exit.process_tgid)
            printf("exit %d %u %llu\n", event->event_data.exit.process_pid, event->event_data.exit.exit_code,
                   (unsigned long long)event->timestamp_ns / 1000000);
        break;
    default: break;
    }
    return true;
}

static bool print_messages(const char *buffer, size_t length) {
    for (const struct nlmsghdr *head = (const struct nlmsghdr *)buffer; NLMSG_OK(head, length);
         head = NLMSG_NEXT(head, length)) {
        const struct cn_msg *message = NLMSG_DATA(head);
        if (head->nlmsg_len < NLMSG_LENGTH(sizeof *message) || message->id.idx != CN_IDX_PROC ||
            message->id.val != CN_VAL_PROC || head->nlmsg_len < NLMSG_LENGTH(sizeof *message) + message->len)
            continue;
        struct proc_event event = {0}; /* older kernels send fewer bytes */
        memcpy(&event, message->data, message->len < sizeof event ? message->len : sizeof event);
        bool is_own_answer = event.what == PROC_EVENT_NONE && message->ack == own_request + 1;
        bool is_event = event.what != PROC_EVENT_NONE && is_answered;
        if ((is_own_answer || is_event) && !print_event(&event))
            return false;
    }
    return true;
}

static int refused(void) {
    printf("refused %d\n", errno);
    return 1;
}

static int64_t now_ms(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

int report_events(void) {
    static char buffer[1 << 16] __attribute__((aligned(NLMSG_ALIGNTO)));
    setvbuf(stdout, NULL, _IOFBF, 1 << 16);
    int fd = listen_to_kernel();
    if (fd < 0)
        return refused();
    for (int64_t flush_ms = 0;;) { /* when lines are to be written; 0: there are none */
        struct pollfd ready[2] = {{.fd = fd, .events = POLLIN}, {.fd = 0, .events = POLLIN}};
        int64_t left_ms = flush_ms - now_ms();
        int count = poll(ready, 2, flush_ms == 0 ? -1 : left_ms > 0 ? (int)left_ms : 0);
        if (count < 0 && errno != EINTR)
            return refused();
        char byte;
        if (ready[1].revents && read(0, &byte, 1) <= 0)
            return 0;
        for (;;) {
            struct sockaddr_nl from = {0};
            socklen_t size = sizeof from;
            ssize_t length = recvfrom(fd, buffer, sizeof buffer, 0, (struct sockaddr *)&from, &size);
            if (length < 0 && errno == ENOBUFS) {
                puts("lost");
                continue;
            }
            if (length <= 0)
                break;
            if (from.nl_pid == 0 && !print_messages(buffer, (size_t)length)) /* 0: the kernel */
                return 1;
        }
        int64_t read_ms = now_ms();
        if (flush_ms == 0) {
            flush_ms = read_ms + FLUSH_MS;
        } else if (read_ms >= flush_ms) {
            flush_ms = 0;
            if (fflush(stdout) != 0)
                return 0; /* nobody reads */
        }
        poll(NULL, 0, GATHER_MS);
    }
}
