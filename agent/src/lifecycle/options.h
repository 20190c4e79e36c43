/* options.h - what TIDEMARK, or a late request to arm, may specify. */
#ifndef TIDEMARK_OPTIONS_H
#define TIDEMARK_OPTIONS_H

#include "core/state.h"

struct tm_options {
    int on;                                 /* "off" was not given */
    int native;                             /* "native" */
    int copies;                             /* "copies" */
    int no_follow;                          /* "nofollow" */
    int fixed;                              /* "fixed" */
    uint64_t period;                        /* "period=512K"; 0: as the pool specifies */
    char pool[sizeof tm_settings.pool.path]; /* "pool=/proc/PID/fd/N"; empty: create a pool */
    char directory[sizeof tm_settings.directory]; /* "dir=/path": the folder of that pool's file */
    char unknown[64];                       /* the last unknown word */
};

/* Reads "word,word=value,...". Unknown words are ignored; the last one is kept. */
void tm_read_options(const char *text, struct tm_options *options);

#endif
