/* resolve.c - finding symbols in loaded objects by their own tables.
 *
 * Not by dlsym(): we stand in front of it, it allocates for its error texts, and with
 * RTLD_NEXT it needs libdl on older C libraries. dl_iterate_phdr() and the dynamic
 * section (System V gABI, chapter 5; DT_GNU_HASH as binutils writes it) are enough.
 */
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "hooks/hook_table.h"
#include "hooks/hooks.h"
#include "process/objects.h"

struct visit {
    int (*function)(const struct tm_object *, void *);
    void *data;
};

static int visit_one(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)size;
    struct visit *visit = data;
    struct tm_object object = {
        .bias = info->dlpi_addr,
        .start = UINTPTR_MAX,
        .path = info->dlpi_name ? info->dlpi_name : "",
        .program_headers = info->dlpi_phdr,
        .program_header_count = info->dlpi_phnum,
    };
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        if (header->p_type != PT_LOAD)
            continue;
        uintptr_t start = info->dlpi_addr + header->p_vaddr, end = start + header->p_memsz;
        if (start < object.start)
            object.start = start;
        if (end > object.end)
            object.end = end;
    }
    return object.end ? visit->function(&object, visit->data) : 0;
}

int tm_each_object(int (*function)(const struct tm_object *, void *), void *data)
{
    struct visit visit = {function, data};
    return dl_iterate_phdr(visit_one, &visit);
}

static int read_changes(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)size;
    *(uint64_t *)data = info->dlpi_adds + info->dlpi_subs;
    return 1;
}

uint64_t tm_object_changes(void)
{
    uint64_t changes = 0;
    dl_iterate_phdr(read_changes, &changes);
    return changes;
}

/* What of a dynamic section a look-up needs. */
struct symbols {
    const ElfW(Sym) *table;
    const char *names;
    const ElfW(Half) *versions;
    const uint32_t *gnu_hash;
    const uint32_t *hash;
};

/* The loader rewrites these entries to addresses, except in read-only sections (vdso). */
static const void *dynamic_address(uintptr_t bias, uintptr_t value)
{
    return (const void *)(value < bias ? bias + value : value);
}

static int read_dynamic(const struct tm_object *object, struct symbols *symbols)
{
    const ElfW(Dyn) *dynamic = NULL;
    const ElfW(Phdr) *headers = object->program_headers;
    for (uint32_t i = 0; i < object->program_header_count; i++)
        if (headers[i].p_type == PT_DYNAMIC)
            dynamic = (const ElfW(Dyn) *)(object->bias + headers[i].p_vaddr);
    memset(symbols, 0, sizeof *symbols);
    for (; dynamic && dynamic->d_tag != DT_NULL; dynamic++) {
        const void *address = dynamic_address(object->bias, dynamic->d_un.d_ptr);
        switch (dynamic->d_tag) {
        case DT_SYMTAB: symbols->table = address; break;
        case DT_STRTAB: symbols->names = address; break;
        case DT_VERSYM: symbols->versions = address; break;
        case DT_GNU_HASH: symbols->gnu_hash = address; break;
        case DT_HASH: symbols->hash = address; break;
        }
    }
    return symbols->table && symbols->names;
}

/* A definition that others may bind to, in its default version (bit 15: hidden). */
static int defines(const struct symbols *symbols, uint32_t index, const char *name)
{
    const ElfW(Sym) *symbol = &symbols->table[index];
    unsigned type = ELF64_ST_TYPE(symbol->st_info);
    return symbol->st_shndx != SHN_UNDEF && symbol->st_value != 0 && type != STT_TLS &&
           !(symbols->versions && symbols->versions[index] & 0x8000) &&
           strcmp(symbols->names + symbol->st_name, name) == 0;
}

static uint32_t search_gnu_hash(const struct symbols *symbols, const char *name)
{
    uint32_t hash = 5381;
    for (const unsigned char *at = (const unsigned char *)name; *at; at++)
        hash = hash * 33 + *at;
    const uint32_t *table = symbols->gnu_hash;
    uint32_t bucket_count = table[0], first = table[1], bloom_words = table[2];
    const uint32_t *buckets = table + 4 + bloom_words * (sizeof(ElfW(Addr)) / 4);
    const uint32_t *chain = buckets + bucket_count;
    uint32_t index = bucket_count ? buckets[hash % bucket_count] : 0;
    if (index < first)
        return 0;
    for (;; index++) {
        uint32_t entry = chain[index - first];
        if ((entry | 1) == (hash | 1) && defines(symbols, index, name))
            return index;
        if (entry & 1)
            return 0;
    }
}

static uint32_t search_hash(const struct symbols *symbols, const char *name)
{
    uint32_t count = symbols->hash[1];
    for (uint32_t index = 1; index < count; index++)
        if (defines(symbols, index, name))
            return index;
    return 0;
}

void *tm_object_symbol(const struct tm_object *object, const char *name)
{
    size_t size;
    return tm_object_symbol_sized(object, name, &size);
}

void *tm_object_symbol_sized(const struct tm_object *object, const char *name, size_t *size)
{
    struct symbols symbols;
    if (!read_dynamic(object, &symbols))
        return NULL;
    uint32_t index = symbols.gnu_hash ? search_gnu_hash(&symbols, name)
                     : symbols.hash   ? search_hash(&symbols, name)
                                      : 0;
    if (!index)
        return NULL;
    const ElfW(Sym) *symbol = &symbols.table[index];
    uintptr_t address = object->bias + symbol->st_value;
    *size = symbol->st_size;
    if (ELF64_ST_TYPE(symbol->st_info) == STT_GNU_IFUNC)
        return ((void *(*)(void))address)();
    return (void *)address;
}

/* ---- the functions behind ours ------------------------------------------------------ */

static void *boot_malloc(size_t bytes)
{
    tm_resolve();
    return tm_real.malloc(bytes);
}
static void *boot_calloc(size_t count, size_t bytes)
{
    tm_resolve();
    return tm_real.calloc(count, bytes);
}
static void *boot_realloc(void *address, size_t bytes)
{
    tm_resolve();
    return tm_real.realloc(address, bytes);
}
static void boot_free(void *address)
{
    tm_resolve();
    tm_real.free(address);
}
static int boot_posix_memalign(void **result, size_t alignment, size_t bytes)
{
    tm_resolve();
    return tm_real.posix_memalign(result, alignment, bytes);
}
static void *boot_aligned_alloc(size_t alignment, size_t bytes)
{
    tm_resolve();
    return tm_real.aligned_alloc(alignment, bytes);
}
static void *boot_memalign(size_t alignment, size_t bytes)
{
    tm_resolve();
    return tm_real.memalign(alignment, bytes);
}
static void *boot_valloc(size_t bytes)
{
    tm_resolve();
    return tm_real.valloc(bytes);
}
static void *boot_pvalloc(size_t bytes)
{
    tm_resolve();
    return tm_real.pvalloc(bytes);
}

struct tm_real tm_real = {
    .malloc = boot_malloc,
    .calloc = boot_calloc,
    .realloc = boot_realloc,
    .free = boot_free,
    .posix_memalign = boot_posix_memalign,
    .aligned_alloc = boot_aligned_alloc,
    .memalign = boot_memalign,
    .valloc = boot_valloc,
    .pvalloc = boot_pvalloc,
};

static const char *const names[] = {
    "malloc", "calloc", "realloc", "free", "posix_memalign", "aligned_alloc", "memalign", "valloc", "pvalloc",
    "open", "open64", "openat", "openat64", "fopen", "fopen64", "socket", "socketpair", "accept", "accept4",
    "pipe", "pipe2", "epoll_create1", "eventfd",
};
#define NAME_COUNT (sizeof names / sizeof names[0])
_Static_assert(sizeof(struct tm_real) == NAME_COUNT * sizeof(void *), "one name a pointer, in order");

/* The first definitions among some objects. */
struct definitions {
    void *found[NAME_COUNT];
    void *dlsym;
    uintptr_t malloc_start, malloc_end;
    int malloc_in_libc;
    int libc; /* the C library is one of them */
};

struct search {
    struct definitions before_us, after_us;
    int past_us;
};

void *(*tm_real_dlsym)(void *, const char *) __attribute__((visibility("hidden")));
static uintptr_t foreign_start, foreign_end;
static int hidden_behind_other, is_late;

static int search_object(const struct tm_object *object, void *data)
{
    struct search *search = data;
    if ((uintptr_t)search_object >= object->start && (uintptr_t)search_object < object->end) {
        search->past_us = 1;
#ifndef TM_TEST_ENTRIES
        return 0;
#endif
    }
    struct definitions *definitions = search->past_us ? &search->after_us : &search->before_us;
    int is_libc = tm_object_symbol(object, "__libc_start_main") != NULL;
    definitions->libc |= is_libc;
    for (size_t i = 0; i < NAME_COUNT; i++) {
        if (definitions->found[i] || !(definitions->found[i] = tm_object_symbol(object, names[i])) || i != 0)
            continue;
        definitions->malloc_start = object->start;
        definitions->malloc_end = object->end;
        definitions->malloc_in_libc = is_libc;
    }
    if (!definitions->dlsym)
        definitions->dlsym = tm_object_symbol(object, "dlsym");
    return 0;
}

/* Preloaded, the allocator behind ours comes after us. Loaded into a program that runs, we come
 * after the C library, and what its calls go to now is the first definition of all. */
void tm_resolve(void)
{
    struct search search = {.past_us = 0};
    tm_each_object(search_object, &search);
    is_late = search.before_us.libc;
    const struct definitions *behind = is_late ? &search.before_us : &search.after_us;
    void **real = (void **)&tm_real;
    for (size_t i = 0; i < NAME_COUNT; i++)
        if (behind->found[i])
            __atomic_store_n(&real[i], behind->found[i], __ATOMIC_RELEASE);
    __atomic_store_n((void **)&tm_real_dlsym, behind->dlsym, __ATOMIC_RELEASE);
    if (!behind->malloc_in_libc) {
        foreign_start = behind->malloc_start;
        foreign_end = behind->malloc_end;
    }
    hidden_behind_other = !is_late && search.before_us.found[0] != NULL;
}

#ifdef TM_TEST_ENTRIES
int tm_test_late; /* the core's tests hold it in the executable */
#else
#define tm_test_late 0
#endif

int tm_came_late(void)
{
    return is_late || tm_test_late;
}

int tm_foreign_allocator(uintptr_t *start, uintptr_t *end)
{
    *start = foreign_start;
    *end = foreign_end;
    return foreign_end != 0 || hidden_behind_other;
}

int tm_stands_behind(void)
{
    if (!tm_real_dlsym)
        tm_resolve();
    return hidden_behind_other;
}

void *tm_real_mmap(void *address, size_t length, int protection, int flags, int descriptor, off_t offset)
{
    return (void *)syscall(SYS_mmap, address, length, protection, flags, descriptor, offset);
}

int tm_real_munmap(void *address, size_t length)
{
    return (int)syscall(SYS_munmap, address, length);
}

void *tm_real_mremap(void *address, size_t old_length, size_t new_length, int flags, void *new_address)
{
    return (void *)syscall(SYS_mremap, address, old_length, new_length, flags, new_address);
}

/* ---- dlsym (dlsym.S) -------------------------------------------------------------------- */

/* The entry point that dlsym(handle, name) asks for: all else is a tail jump. */
static const struct tm_hook *hook_named(const char *name)
{
    for (size_t i = 0; name && i < TM_HOOK_COUNT; i++)
        if (strcmp(name, tm_hooks[i].name) == 0)
            return &tm_hooks[i];
    return NULL;
}

__attribute__((visibility("hidden"))) int tm_dlsym_concerns(const char *name)
{
    if (!tm_real_dlsym)
        tm_resolve();
    return hook_named(name) != NULL;
}

#ifndef TM_TEST_ENTRIES
/* An explicit handle names the C library's allocator, or its mmap: answer ours, so that its callers
 * are seen. Any other answer (an allocator of the library's own) stays as it is: ours in its place
 * would change which allocator the caller gets. */
__attribute__((visibility("hidden"))) void *tm_dlsym_allocator(void *handle, const char *name)
{
    void *answer = tm_real_dlsym(handle, name);
    const struct tm_hook *hook = hook_named(name);
    return hook && answer && answer == hook->real ? hook->ours : answer;
}
#endif
