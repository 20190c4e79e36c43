/* python.h - the functions of python/ that sampling uses. */
#ifndef TIDEMARK_PYTHON_H
#define TIDEMARK_PYTHON_H

#include <stdint.h>

/* Stacks keep this many frames nearest the leaf and nearest the root, with a mark between them. */
#define TM_LEAF_FRAMES 100u
#define TM_ROOT_FRAMES 20u
#define TM_RAW_FRAMES (TM_LEAF_FRAMES + TM_ROOT_FRAMES)

/* One interpreter frame as captured: its name is looked up later. */
struct tm_raw_frame {
    const void *code;  /* PyCodeObject */
    uint32_t position; /* instruction offset, in the unit of the version */
    uint32_t left_out : 31; /* frames dropped between this one and the next towards the root */
    uint32_t entry : 1;     /* C code called the evaluator for this frame: one native frame of the evaluator represents
                               this frame and the inlined calls that follow towards the leaf */
};

/* Searches the loaded objects for an interpreter and selects its layout; calls `found`, during the search, with
 * an interpreter that it finds. `running`: it may run in other threads. Called once by the constructor, and again
 * from the slow path if objects have been loaded since; not locked; idempotent. */
struct tm_object;
void tm_python_find(void (*found)(const struct tm_object *object, int running));

/* In a running program: non-zero if an interpreter was found earlier and not refused. */
int tm_python_is_known(void);

/* The calling thread's Python stack, leaf first, at most TM_RAW_FRAMES entries: the
 * TM_LEAF_FRAMES nearest the leaf and the TM_ROOT_FRAMES nearest the root. Not locked;
 * calls only functions of the interpreter that neither allocate nor lock. Returns the
 * number written; 0: no stack. The frames are valid until tm_python_release(). */
unsigned tm_python_capture(struct tm_raw_frame raw[TM_RAW_FRAMES]);

/* Identifies the calling thread's innermost functions, as a hash; 0: unknown. Cheaper than a stack, and for kinds of
 * blocks only (period/churn.c): a frame that is being set up counts, and nothing is proved about it. Not locked. */
uint64_t tm_python_functions(void);
/* The same of a captured stack, leaf first. */
uint64_t tm_python_functions_of(const struct tm_raw_frame *raw, unsigned count);

/* The object that carries the labels of the calling thread's contextvars context; NULL: none.
 * Not locked. Only for tm_python_label(), and only before tm_python_release(). */
const void *tm_python_context(void);

/* Every slow path that called tm_python_capture() or tm_python_context() calls this when
 * it no longer needs their results (interned or not); harmless otherwise. */
void tm_python_release(void);

/* A frame that has an id, and the fields of its code object for which the id is valid: code objects are freed, and
 * their addresses reused. */
struct tm_known_frame {
    const void *code;
    const void *name;
    const void *file;
    const void *lines;
    const void *instructions;
    uint32_t size; /* of the instructions, in the unit of ob_size */
    uint32_t first_line;
    uint32_t position;
    uint32_t frame;       /* id in the segment of `incarnation` */
    uint32_t incarnation; /* 0: empty */
    uint32_t stack;       /* id of the stack that ends with it, for its owner's use */
};

/* (locked) The frame's id in this segment, or TM_NONE; fills `known` in. The frame belongs to the calling thread, so
 * its code object is alive. */
uint32_t tm_python_intern(const struct tm_raw_frame *raw, struct tm_known_frame *known);

/* (locked) Whether a frame of the calling thread is still the known one. */
int tm_python_is_same(const struct tm_raw_frame *raw, const struct tm_known_frame *known);

/* (locked) The label that `context` (not NULL) represents, extending `parent`. */
uint32_t tm_python_label(const void *context, uint32_t parent);

/* (locked) Called by a thread that holds the GIL and called tm_python_capture(): ends the samples that
 * only the interpreter's method cache keeps alive. Checks only from time to time. */
void tm_python_end_cached_names(uint64_t now_ms);

/* Non-zero while the runtime finalizes, and after that until it is initialized again. */
int tm_python_finalises(void);
/* Non-zero until the finalizing runtime has deleted its interpreters, or if that is unknown. */
int tm_python_has_interpreter(void);
/* Non-zero if the calling thread holds the GIL; an interpreter must have been found. */
int tm_python_holds_gil(void);

/* Non-zero when the address is in the evaluator's machine code, whose native frames represent Python
 * frames; 0 when unknown. */
int tm_python_is_evaluator(const void *return_address);

#endif
