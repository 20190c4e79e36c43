/* tidemark-guard keep : holds the pool of a process that was attached late.
 *
 *   pool SLOTS PERIOD OPTIONS -> pool PID FD, or nopool ERRNO TEXT     as in docs/spine.md
 *   orphan PATH                  where the used slots are saved if the recorder dies first
 *   leave                        the recording is complete: nothing is left behind
 *   end of file                  without `leave`: the recorder died
 */
#include "guard.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct keeper {
    struct wire in, out;
    int pool; /* -1: none */
    char *orphan_path;
    bool done;
};

static void obey(struct keeper *keeper, struct message *message) {
    const char *verb = message->fields[0];
    char head[96];
    if (!strcmp(verb, "pool") && message->count == 4 && keeper->pool < 0) {
        keeper->pool = pool_create((uint32_t)strtoul(message->fields[1], NULL, 10),
                                   strtoull(message->fields[2], NULL, 10),
                                   (uint32_t)strtoul(message->fields[3], NULL, 10));
        int why = errno;
        if (keeper->pool < 0)
            snprintf(head, sizeof head, "nopool\t%d", why);
        else
            snprintf(head, sizeof head, "pool\t%d\t%d", (int)getpid(), keeper->pool);
        wire_send(&keeper->out, head, keeper->pool < 0 ? strerror(why) : NULL);
    } else if (!strcmp(verb, "orphan") && message->count == 2) {
        free(keeper->orphan_path);
        keeper->orphan_path = strdup(message->fields[1]);
    } else if (!strcmp(verb, "leave")) {
        keeper->done = true;
    }
}

int keep_pool(void) {
    setpgid(0, 0); /* the terminal's keys are for the recorder, which forwards their meaning */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    struct keeper keeper = {.in = {.fd = 0}, .out = {.fd = 1}, .pool = -1};
    while (!keeper.done && wire_fill(&keeper.in)) {
        struct message message;
        while (wire_next(&keeper.in, &message)) {
            obey(&keeper, &message);
            message_free(&message);
        }
    }
    if (keeper.done || keeper.pool < 0 || !keeper.orphan_path)
        return 0;
    return pool_save(keeper.pool, keeper.orphan_path) != 0;
}
