/* objects.h - the loaded objects of this process and the symbols that they define.
 *
 * None of these functions takes a lock of ours; each takes the loader's list lock.
 */
#ifndef TIDEMARK_OBJECTS_H
#define TIDEMARK_OBJECTS_H

#include <stddef.h>
#include <stdint.h>

/* A loaded object as dl_iterate_phdr() describes it; valid while it stays loaded. */
struct tm_object {
    uintptr_t bias;
    uintptr_t start, end; /* range of all its loaded segments */
    const char *path;     /* as the loader names it; "" for the executable */
    const void *program_headers;
    uint32_t program_header_count;
};

/* Calls `visit` for every object in load order until it returns non-zero; returns that value. */
int tm_each_object(int (*visit)(const struct tm_object *object, void *data), void *data);
/* Address of a symbol that the object defines in its dynamic table; NULL: none. */
void *tm_object_symbol(const struct tm_object *object, const char *name);
void *tm_object_symbol_sized(const struct tm_object *object, const char *name, size_t *size);
/* Number of objects ever loaded plus unloaded: a new value means that the list changed. */
uint64_t tm_object_changes(void);

#endif
