/* object.c - a library with pointers to allocators of one kind, selected by how it is built (Makefile):
 *
 *   lazy      .got.plt, resolved at the first call        now       .got.plt, RELRO
 *   noplt     .got (GLOB_DAT), RELRO                      norelro   .got, never read-only
 *   data      pointers in data, read-only and not (R_X86_64_64)
 *   ifunc     a function of its own whose resolver chose malloc (JUMP_SLOT or IRELATIVE)
 */
#include <stdlib.h>
#include <string.h>

#if defined(KIND_norelro)
int _PyRuntime; /* represents the interpreter's object */
#endif

#if defined(KIND_data)
static void *(*const table_malloc)(size_t) = malloc;
static void (*table_free)(void *) = free;
void change_table(void (*function)(void *)); /* forces the compiler to read it */
void change_table(void (*function)(void *))
{
    table_free = function;
}
#define TAKE(bytes) (*(void *(*const volatile *)(size_t))&table_malloc)(bytes)
#define GIVE(address) (*(void (*volatile *)(void *))&table_free)(address)
#elif defined(KIND_ifunc)
typedef void *(*allocator)(size_t);
static allocator choose(void)
{
    return malloc;
}
static void *chosen(size_t) __attribute__((ifunc("choose")));
#define TAKE(bytes) chosen(bytes)
#define GIVE(address) free(address)
#else
#define TAKE(bytes) malloc(bytes)
#define GIVE(address) free(address)
#endif

void *object_take(size_t bytes)
{
    return TAKE(bytes);
}

void *object_change(void *address, size_t bytes)
{
    return realloc(address, bytes);
}

char *object_copy(const char *text)
{
    return strdup(text);
}

void object_give(void *address)
{
    GIVE(address);
}
