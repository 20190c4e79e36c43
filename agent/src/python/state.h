/* state.h - the interpreter's layout and functions, shared by the files of python/.
 *
 * find.c fills it in once and publishes it with `ready`; after that nothing changes
 * but `trust`. All offsets come from `layout` (agent/layouts).
 */
#ifndef TIDEMARK_PYTHON_STATE_H
#define TIDEMARK_PYTHON_STATE_H

#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "../../layouts/layout.h"
#include "core/core.h"
#include "process/objects.h"

enum tm_python_trust {
    TM_TRUST_UNTRIED = 0, /* no stack walked yet: the first walks go through checked reads */
    TM_TRUST_PROVEN = 1,
    TM_TRUST_REFUSED = 2, /* a self-check failed: no Python frames in this process any more */
};

struct tm_python {
    _Atomic int ready; /* the fields below are final */
    _Atomic int trust; /* enum tm_python_trust */
    _Atomic int awaited; /* an interpreter was loaded that has not run yet: probe again */
    struct tm_python_layout layout;
    char version[32]; /* "3.11.7" */

    /* Functions of the interpreter that neither allocate nor take a lock. */
    void *(*this_thread_state)(void);        /* PyGILState_GetThisThreadState */
    void *(*current_thread_state)(void);     /* of the holder of the GIL; 3.12+: of this thread, if it holds it */
    void *(*thread_interpreter)(void *);     /* PyThreadState_GetInterpreter */
    int (*is_finalizing)(void);
    void *(*first_interpreter)(void);        /* PyInterpreterState_Head; NULL: not there */

    const void *code_type, *unicode_type, *bytes_type, *long_type;
    uintptr_t evaluator_start, evaluator_end;
};

extern struct tm_python tm_python __attribute__((visibility("hidden")));

/* find.c: no Python frames from now on; one line in the log gives the reason. */
void tm_python_refuse(uint32_t limit_bits, const char *why);

/* 0: a host has unloaded the interpreter that was found; then it is refused. Not locked. */
int tm_python_is_loaded(void);

/* thread.c: the calling thread's PyThreadState if it may be read now, else NULL.
 * Until tm_python_release(), the memory of thread states that are deleted stays mapped. */
const char *tm_python_hold_thread(void);
/* A lock that never waits: 1 if it was free. A forked child finds it free. */
int tm_python_try_exclusive(void);
void tm_python_end_exclusive(void);
/* Waits (bounded) until no other thread reads a thread state: called before memory of the
 * interpreter is unmapped while it finalizes. */
void tm_python_wait_for_readers(void);
/* Copies `length` bytes at `address` of this process; 0 if they are not readable. */
int tm_python_read(const void *address, void *copy, size_t length);

/* text.c */
/* UTF-8 of a str, cut at `capacity` bytes between characters. Lone surrogates are written
 * as Python prints them (\udc80). Returns the length. */
size_t tm_python_text(const void *unicode, char *text, size_t capacity);
/* The length and address of the text of a str that contains only ASCII; 0: any other str, or an empty one. */
size_t tm_python_ascii(const void *unicode, const char **text);
struct tm_known_frame; /* python/python.h */
/* lines.c (locked): line of an instruction, by its byte offset in the frame's code object; 0: none or unknown. */
uint32_t tm_python_line(const struct tm_known_frame *frame, int64_t instruction_offset);
/* intern.c: whether two frames are in the same function, at whatever instructions. */
int tm_python_is_same_function(const struct tm_known_frame *a, const struct tm_known_frame *b);

/* Reads a field at an offset of an interpreter's structure. */
static inline const char *tm_pointer_at(const void *base, uint16_t offset)
{
    const char *value;
    memcpy(&value, (const char *)base + offset, sizeof value);
    return value;
}

static inline int32_t tm_int_at(const void *base, uint16_t offset)
{
    int32_t value;
    memcpy(&value, (const char *)base + offset, sizeof value);
    return value;
}

static inline uint64_t tm_word_at(const void *base, uint16_t offset)
{
    uint64_t value;
    memcpy(&value, (const char *)base + offset, sizeof value);
    return value;
}

/* ob_type of an object; its offset is 8 in every GIL build so far. */
static inline const void *tm_type_of(const void *object)
{
    return tm_pointer_at(object, 8);
}

/* 3.14+ stores flags in the low bits of a frame's pointer to its code; code objects are aligned. */
static inline const char *tm_frame_code(const void *frame)
{
    return (const char *)(tm_word_at(frame, tm_python.layout.frame_code) & ~(uint64_t)7);
}

static inline const char *tm_innermost_frame(const char *thread)
{
    const char *frame = tm_pointer_at(thread, tm_python.layout.thread_frame);
    if (tm_python.layout.thread_cframe_frame != TM_NO_OFFSET && frame)
        frame = tm_pointer_at(frame, tm_python.layout.thread_cframe_frame);
    return frame;
}

#endif
