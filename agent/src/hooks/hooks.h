/* hooks.h - the functions behind ours, and the names of ours.
 *
 * In the library the entry points have the C library's names. In the core's tests they have a prefix, because a
 * sanitizer's interposer and ours cannot both come first.
 */
#ifndef TIDEMARK_HOOKS_H
#define TIDEMARK_HOOKS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/types.h>

#ifdef TM_TEST_ENTRIES
#define TM_ENTRY(name) tidemark_test_##name
#else
#define TM_ENTRY(name) name
#endif
#define TM_EXPORT __attribute__((visibility("default")))
#define TM_TEXT(name) #name
#define TM_TEXT_OF(name) TM_TEXT(name)
/* A second name for an entry point, tm_own_NAME, that only we define: the definition to which the first name
 * resolves depends on the process. */
#define TM_OWN(name)                                                                          \
    __asm__(".globl tm_own_" #name "\n.hidden tm_own_" #name "\n.set tm_own_" #name ", " TM_TEXT_OF(TM_ENTRY(name)))

/* The functions behind ours (resolve.c). Until they are known, functions that find them. */
struct tm_real {
    void *(*malloc)(size_t);
    void *(*calloc)(size_t, size_t);
    void *(*realloc)(void *, size_t);
    void (*free)(void *);
    int (*posix_memalign)(void **, size_t, size_t);
    void *(*aligned_alloc)(size_t, size_t);
    void *(*memalign)(size_t, size_t);
    void *(*valloc)(size_t);
    void *(*pvalloc)(size_t);
    /* Functions that open descriptors; NULL until they are known. */
    int (*open)(const char *, int, ...);
    int (*open64)(const char *, int, ...);
    int (*openat)(int, const char *, int, ...);
    int (*openat64)(int, const char *, int, ...);
    FILE *(*fopen)(const char *, const char *);
    FILE *(*fopen64)(const char *, const char *);
    int (*socket)(int, int, int);
    int (*socketpair)(int, int, int, int[2]);
    int (*accept)(int, struct sockaddr *, socklen_t *);
    int (*accept4)(int, struct sockaddr *, socklen_t *, int);
    int (*pipe)(int[2]);
    int (*pipe2)(int[2], int);
    int (*epoll_create1)(int);
    int (*eventfd)(unsigned, int);
};
extern struct tm_real tm_real __attribute__((visibility("hidden")));

/* Of the C library; NULL while its allocator is not the one behind ours, or not known. While its `__realloc_hook` is set
 * (glibc before 2.34: mcheck), blocks begin elsewhere, and their size must not be asked for. */
extern size_t (*tm_usable_size)(void *) __attribute__((visibility("hidden")));
extern void *const *tm_realloc_hook __attribute__((visibility("hidden")));
/* Finds them all; idempotent, safe in any thread, allocates nothing. */
void tm_resolve(void);
/* Non-zero if malloc belongs to another allocator than the C library's. Its mappings then contain what we
 * count; the range is that of its object. */
int tm_foreign_allocator(uintptr_t *start, uintptr_t *end);
/* Non-zero if an object before ours (preloaded earlier, or the executable) defines malloc. */
int tm_is_preceded(void);
/* Non-zero if the library was loaded into a running program: no name resolves to ours by itself. */
int tm_is_loaded_late(void);

#endif
