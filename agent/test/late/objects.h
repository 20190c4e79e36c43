/* objects.h - a running program: libraries with pointers to allocators of each kind (object.c), and the core
 * entered as if it had been loaded late. The libraries are in ../late beside the test.
 */
#ifndef TIDEMARK_LATE_OBJECTS_H
#define TIDEMARK_LATE_OBJECTS_H

#include <dlfcn.h>
#include <errno.h>
#include <link.h>

#include "../harness.h"
#include "slots/slots.h"
#include "tidemark.h"

extern int tm_test_late;

struct object {
    void *handle;
    void *(*take)(size_t);
    void *(*change)(void *, size_t);
    char *(*copy)(const char *);
    void (*give)(void *);
};

static const char *const kinds[] = {"lazy", "now", "noplt", "norelro", "data", "ifunc"};
#define KINDS (sizeof kinds / sizeof *kinds)
static char object_folder[512];

static inline struct object open_object(const char *kind)
{
    char path[600];
    snprintf(path, sizeof path, "%s/%s.so", object_folder, kind);
    struct object object = {.handle = dlopen(path, strcmp(kind, "lazy") == 0 ? RTLD_LAZY : RTLD_NOW)};
    if (!object.handle)
        fprintf(stderr, "# %s\n", dlerror());
    CHECK(object.handle != NULL);
    object.take = (void *(*)(size_t))dlsym(object.handle, "object_take");
    object.change = (void *(*)(void *, size_t))dlsym(object.handle, "object_change");
    object.copy = (char *(*)(const char *))dlsym(object.handle, "object_copy");
    object.give = (void (*)(void *))dlsym(object.handle, "object_give");
    CHECK(object.take && object.change && object.copy && object.give);
    return object;
}

/* In the case's own process: the children that it forks inherit the library. */
static inline void load(void)
{
    static int loaded;
    if (loaded++)
        return;
    tm_test_late = 1;
    tm_start();
}

static inline void arm(const char *options)
{
    char why[256] = "", text[300];
    load();
    snprintf(text, sizeof text, "dir=%s,%s", test_directory, options);
    if (tidemark_arm(text, why, sizeof why) != 0)
        fprintf(stderr, "# %s\n", why);
    CHECK(tm_armed() && !why[0]);
}

static inline void disarm(void)
{
    char why[256] = "";
    int refused = tidemark_disarm(why, sizeof why);
    if (refused)
        fprintf(stderr, "# %s\n", why);
    CHECK(!refused);
    CHECK(!tm_armed() && tm_settings.enabled == 0);
}

/* ---- what an object's memory looks like -------------------------------------------------- */

struct image {
    const char *kind;
    unsigned char bytes[32768];
    size_t length;
};

static inline int copy_image(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)size;
    struct image *image = data;
    char end[64];
    snprintf(end, sizeof end, "/%s.so", image->kind);
    size_t length = strlen(info->dlpi_name), tail = strlen(end);
    if (length < tail || strcmp(info->dlpi_name + length - tail, end) != 0)
        return 0;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        if (header->p_type != PT_LOAD || !(header->p_flags & PF_W))
            continue;
        CHECK(image->length + header->p_memsz <= sizeof image->bytes);
        memcpy(image->bytes + image->length, (const void *)(info->dlpi_addr + header->p_vaddr), header->p_memsz);
        image->length += header->p_memsz;
    }
    return 1;
}

static inline void take_image(struct image *image, const char *kind)
{
    image->kind = kind;
    image->length = 0;
    CHECK(dl_iterate_phdr(copy_image, image) == 1 && image->length > 0);
}

static inline int same_image(const struct image *before)
{
    static struct image after;
    take_image(&after, before->kind);
    return after.length == before->length && memcmp(after.bytes, before->bytes, after.length) == 0;
}

/* ---- using the objects --------------------------------------------------------------------- */

static inline void use(const struct object *object)
{
    uint64_t samples = tm_core.header->samples, frees = tm_core.header->frees_seen;
    void *block = object->take(5000);
    CHECK(tm_is_sampled(block) && tm_core.header->samples == samples + 1);
    block = object->change(block, 9000);
    CHECK(tm_is_sampled(block) && tm_core.header->samples == samples + 2);
    object->give(block);
    CHECK(!tm_is_sampled(block) && tm_core.header->frees_seen == frees + 2);
    char *text = object->copy("a text of some length, but no more");
    CHECK(tm_is_sampled(text) && strcmp(text, "a text of some length, but no more") == 0);
    object->give(text);
}

static inline void use_unseen(const struct object *object)
{
    void *block = object->change(object->take(5000), 9000);
    CHECK(block != NULL);
    object->give(block);
    char *text = object->copy("text");
    CHECK(strcmp(text, "text") == 0);
    object->give(text);
}

static struct image images[KINDS];

static inline void begin_late_tests(const char *program)
{
    const char *slash = strrchr(program, '/');
    snprintf(object_folder, sizeof object_folder, "%.*s/../late", slash ? (int)(slash - program) : 1, slash ? program : ".");
    begin_tests();
}

#endif
