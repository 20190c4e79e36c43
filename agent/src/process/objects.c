/* objects.c - the loaded objects of this process, and their symbols found in their own tables.
 *
 * dlsym() is not used: the agent replaces it, it allocates for its error texts, and with RTLD_NEXT it needs
 * libdl on older C libraries. dl_iterate_phdr() and the dynamic section (System V gABI, chapter 5; DT_GNU_HASH
 * as binutils writes it) are enough.
 */
#include <elf.h>
#include <link.h>
#include <string.h>

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

/* The entries of a dynamic section that a lookup needs. */
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

/* A definition that other objects may bind to, in its default version (bit 15: hidden). */
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
