/* python.h - what the sampling core asks of the part that knows CPython. */
#ifndef TIDEMARK_PYTHON_H
#define TIDEMARK_PYTHON_H

#include <stdint.h>

/* Stacks keep this many frames nearest the leaf and nearest the root, with a mark between them. */
#define TM_LEAF_FRAMES 100u
#define TM_ROOT_FRAMES 20u
#define TM_RAW_FRAMES (TM_LEAF_FRAMES + TM_ROOT_FRAMES)

/* One interpreter frame as captured: no name yet, only where to find it. */
struct tm_raw_frame {
    const void *code;  /* PyCodeObject */
    uint32_t position; /* instruction offset, in the unit of the version */
    uint32_t left_out : 31; /* frames dropped between this one and the next towards the root */
    uint32_t entry : 1;     /* C code called the evaluator for this frame: one native frame of it stands for
                               this frame and those inlined calls that follow towards the leaf */
};

/* Looks for an interpreter among the loaded objects, picks its layout, sets the
 * allocator hooks and calls tm_set_python(). Called once by the constructor and again
 * from the slow path when objects were loaded since; not locked; idempotent. */
void tm_python_probe(void);

/* Called on the slow path every now and then, not locked, by a thread that may or may
 * not hold the GIL: checks that the hooks are still ours and sets them again where that
 * is safe. */
void tm_python_verify(void);

/* In a program that runs, with the GIL held: looks for the interpreter, or remembers it from an
 * earlier recording, and hooks its allocators. */
void tm_python_attach(void);

/* Takes the hooks back wherever they are still ours; those that somebody covered go on to what
 * they cover. 0: this thread does not hold the GIL, and nothing was done. */
int tm_python_unhook(void);

/* The calling thread's Python stack, leaf first, at most TM_RAW_FRAMES entries: the
 * TM_LEAF_FRAMES nearest the leaf and the TM_ROOT_FRAMES nearest the root. Not locked;
 * of the interpreter's functions only such that neither allocate nor lock. Returns the
 * number written; 0: no stack. What it gave is good until tm_python_release(). */
unsigned tm_python_capture(struct tm_raw_frame raw[TM_RAW_FRAMES]);

/* What carries the labels of the calling thread's contextvars context, or NULL: none
 * there. Not locked. For tm_python_label() alone, and before tm_python_release(). */
const void *tm_python_context(void);

/* Every slow path that called tm_python_capture() or tm_python_context() calls this when
 * it is done with what they gave (interned or not); harmless otherwise. */
void tm_python_release(void);

/* (locked) The frame's id in this segment, or TM_NONE. The frame belongs to the calling
 * thread, so its code object lives. */
uint32_t tm_python_intern(const struct tm_raw_frame *raw);

/* (locked) The label that `context` (not NULL) stands for, extending `parent`. */
uint32_t tm_python_label(const void *context, uint32_t parent);

/* (locked) By a thread that holds the GIL and called tm_python_capture(): ends the samples that the
 * interpreter's method cache alone keeps. Looks every now and then. */
void tm_python_end_cached_names(uint64_t now_ms);

/* Non-zero while the runtime finalises, and after that until it is initialised anew. */
int tm_python_finalises(void);
/* Non-zero until the runtime that finalises has deleted its interpreters, and where it cannot tell. */
int tm_python_has_interpreter(void);
/* Non-zero when the calling thread holds the GIL; an interpreter must have been found. */
int tm_python_holds_gil(void);

/* The range of the evaluator's machine code, whose native frames stand for Python
 * frames; 0 when unknown. */
int tm_python_is_evaluator(const void *return_address);

#endif
