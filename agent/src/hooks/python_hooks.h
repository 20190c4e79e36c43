/* python_hooks.h - the hooks of CPython's allocators (python.c), and when they are set (python_install.c). */
#ifndef TIDEMARK_PYTHON_HOOKS_H
#define TIDEMARK_PYTHON_HOOKS_H

#include <stddef.h>

/* As PyMemAllocatorEx and PyObjectArenaAllocator in Include/cpython/pymem.h, objimpl.h. */
struct tm_python_allocator {
    void *context;
    void *(*malloc)(void *context, size_t size);
    void *(*calloc)(void *context, size_t count, size_t size);
    void *(*realloc)(void *context, void *block, size_t size);
    void (*free)(void *context, void *block);
};

struct tm_python_arenas {
    void *context;
    void *(*alloc)(void *context, size_t size);
    void (*free)(void *context, void *arena, size_t size);
};

/* SMALL_REQUEST_THRESHOLD of Objects/obmalloc.c, the same in 3.9-3.15. */
#define TM_PYTHON_SMALL_LIMIT 512u

/* The allocator at the bottom of a domain's chain of allocators. */
enum tm_python_bottom {
    TM_BOTTOM_PYMALLOC,
    TM_BOTTOM_MALLOC,
    TM_BOTTOM_DEBUG,
    TM_BOTTOM_FOREIGN,
};

/* What one setting of a hook covers. */
struct tm_python_record {
    void *(*malloc)(void *, size_t);
    void *(*calloc)(void *, size_t, size_t);
    void *(*realloc)(void *, void *, size_t);
    size_t small_limit; /* blocks up to this come from pools; 0: everything reaches malloc */
    enum tm_python_bottom bottom;
};

/* The two domains that are hooked: PyMem_ and PyObject_. */
#define TM_PYTHON_HOOKED_DOMAINS 2u
/* Each setting of a hook needs its own functions and record. */
#define TM_PYTHON_RECORDS 4u

/* By domain and setting. A record is written before its hook is set, and never changed. */
extern struct tm_python_record tm_python_records[TM_PYTHON_HOOKED_DOMAINS][TM_PYTHON_RECORDS];
extern const struct tm_python_allocator tm_python_hooks[TM_PYTHON_HOOKED_DOMAINS][TM_PYTHON_RECORDS];

/* Non-zero: `arenas` are those that we covered last. */
int tm_python_is_covered_arenas(const struct tm_python_arenas *arenas);
/* Covers the allocator of arenas; returns the one to be set in its place, with its context. */
struct tm_python_arenas tm_python_cover_arenas(struct tm_python_arenas covered);
/* 1: `arenas` were ours, and are now what we covered. 0: they belong to another tool. */
int tm_python_uncover_arenas(struct tm_python_arenas *arenas);
/* Pools are counted object by object, so their arenas are containers and not allocations. */
void tm_python_arenas_are_containers(int containers);

/* ---- python_install.c ------------------------------------------------------------------ */

/* Searches the loaded objects for an interpreter (tm_python_find()), sets the allocator hooks and calls
 * tm_set_python(). */
void tm_python_probe(void);

/* Called on the slow path from time to time, not locked, by a thread that may or may not hold the GIL: checks
 * that the hooks are still ours and sets them again if that is safe. */
void tm_python_verify(void);

/* In a running program, with the GIL held: finds the interpreter, or remembers it from an earlier recording,
 * and hooks its allocators. */
void tm_python_attach(void);

/* Removes the hooks wherever they are still ours. Hooks that another tool has covered stay and call what they
 * cover. 0: this thread does not hold the GIL, and nothing was done. */
int tm_python_unhook(void);

#endif
