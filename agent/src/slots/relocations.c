/* relocations.c - the words of an object into which the loader writes addresses of functions.
 *
 *   DT_RELA     r_offset | r_info (symbol << 32 | type) | r_addend      .got, data
 *   DT_JMPREL   the same                                               .got.plt
 *
 *   R_X86_64_GLOB_DAT, JUMP_SLOT   symbol's address
 *   R_X86_64_64                    symbol's address plus addend: a pointer in data
 *   R_X86_64_IRELATIVE             what the object's own resolver function chose
 *
 * (System V ABI, AMD64 supplement, table 4.9.) A slot is identified by the contents of the word, not by the
 * symbol's name: a slot bound to another allocator's address is not ours. Only a lazy slot (a JUMP_SLOT that
 * still points to the object's own stub) is identified by the name.
 */
#include <elf.h>
#include <link.h>
#include <string.h>

#include "hooks/hook_table.h"
#include "process/objects.h"
#include "slots/slots.h"

struct tables {
    const ElfW(Rela) *general, *calls;
    size_t general_count, call_count;
    const ElfW(Sym) *symbols;
    const char *names;
    unsigned groups; /* of the slots that may be written in this object */
};

static const void *at_bias(uintptr_t bias, uintptr_t value)
{
    return (const void *)(value < bias ? bias + value : value); /* as in process/objects.c */
}

static int read_tables(const struct tm_object *object, struct tables *tables)
{
    const ElfW(Dyn) *dynamic = NULL;
    const ElfW(Phdr) *headers = object->program_headers;
    for (uint32_t i = 0; i < object->program_header_count; i++)
        if (headers[i].p_type == PT_DYNAMIC)
            dynamic = (const ElfW(Dyn) *)(object->bias + headers[i].p_vaddr);
    memset(tables, 0, sizeof *tables);
    size_t general_bytes = 0, call_bytes = 0, relative = 0;
    uintptr_t call_kind = DT_RELA;
    for (; dynamic && dynamic->d_tag != DT_NULL; dynamic++) {
        const void *address = at_bias(object->bias, dynamic->d_un.d_ptr);
        switch (dynamic->d_tag) {
        case DT_RELA: tables->general = address; break;
        case DT_RELASZ: general_bytes = dynamic->d_un.d_val; break;
        case DT_RELACOUNT: relative = dynamic->d_un.d_val; break; /* RELATIVE ones come first */
        case DT_JMPREL: tables->calls = address; break;
        case DT_PLTRELSZ: call_bytes = dynamic->d_un.d_val; break;
        case DT_PLTREL: call_kind = dynamic->d_un.d_val; break;
        case DT_SYMTAB: tables->symbols = address; break;
        case DT_STRTAB: tables->names = address; break;
        }
    }
    if (tables->general && relative <= general_bytes / sizeof(ElfW(Rela))) {
        tables->general += relative;
        tables->general_count = general_bytes / sizeof(ElfW(Rela)) - relative;
    }
    if (tables->calls && call_kind == DT_RELA)
        tables->call_count = call_bytes / sizeof(ElfW(Rela));
    return tables->symbols && tables->names;
}

/* The object's loaded segment around an address, with all of `flags`; 0: none. */
static int lies_in(const struct tm_object *object, uintptr_t address, size_t bytes, uint32_t flags)
{
    const ElfW(Phdr) *headers = object->program_headers;
    for (uint32_t i = 0; i < object->program_header_count; i++) {
        uintptr_t start = object->bias + headers[i].p_vaddr;
        if (headers[i].p_type == PT_LOAD && (headers[i].p_flags & flags) == flags && address >= start &&
            address + bytes <= start + headers[i].p_memsz)
            return 1;
    }
    return 0;
}

static unsigned groups = 1u << TM_SLOTS_ENDS | 1u << TM_SLOTS_BEGINNINGS;

void tm_slots_choose(unsigned chosen)
{
    groups = chosen;
}

/* Whether a slot of this hook may be written, as far as its group decides. */
static int is_chosen(unsigned hook, unsigned chosen)
{
    return tm_hooks[hook].real && (chosen >> tm_hooks[hook].group & 1);
}

/* An allocator copies while it holds its locks (realloc); stacks are captured under no lock of an allocator. */
static unsigned groups_of(const struct tm_object *object)
{
    int copies = (groups >> TM_SLOTS_COPIES & 1) && !tm_object_symbol(object, "malloc");
    return copies ? groups : groups & ~(1u << TM_SLOTS_COPIES);
}

/* The real functions are close together, mostly in one library: one comparison decides nearly every word. */
static uintptr_t lowest, highest;

static void find_bounds(void)
{
    lowest = UINTPTR_MAX, highest = 0;
    for (unsigned i = 0; i < TM_HOOK_COUNT; i++) {
        uintptr_t real = is_chosen(i, groups) ? (uintptr_t)tm_hooks[i].real : 0;
        if (real && real < lowest)
            lowest = real;
        if (real > highest)
            highest = real;
    }
}

static uint8_t hook_of_value(uintptr_t value, unsigned chosen)
{
    if (value < lowest || value > highest)
        return TM_NO_HOOK;
    for (uint8_t i = 0; i < TM_HOOK_COUNT; i++)
        if (is_chosen(i, chosen) && (uintptr_t)tm_hooks[i].real == value)
            return i;
    return TM_NO_HOOK;
}

/* A stub resolves to the first definition in the program's global scope. (An object opened with RTLD_DEEPBIND
 * may have another: it then both allocates and frees with ours.) */
static uint8_t hook_of_stub(const struct tm_object *object, const struct tables *tables, const ElfW(Rela) *entry,
                            uintptr_t value)
{
    const ElfW(Sym) *symbol = &tables->symbols[ELF64_R_SYM(entry->r_info)];
    if (symbol->st_shndx != SHN_UNDEF || !lies_in(object, value, 1, PF_X))
        return TM_NO_HOOK;
    for (uint8_t i = 0; i < TM_HOOK_COUNT; i++)
        if (is_chosen(i, tables->groups) && strcmp(tables->names + symbol->st_name, tm_hooks[i].name) == 0)
            return i;
    return TM_NO_HOOK;
}

/* Calls `found` for each word that is a slot of ours. Returns 0 if `found` returned 0. */
static int visit_entries(const struct tm_object *object, const struct tables *tables, const ElfW(Rela) *entry,
                         size_t count, int (*found)(const struct tm_slot_place *, void *), void *data)
{
    for (; count; count--, entry++) {
        uint32_t type = ELF64_R_TYPE(entry->r_info);
        if (type != R_X86_64_GLOB_DAT && type != R_X86_64_JUMP_SLOT && type != R_X86_64_64 &&
            type != R_X86_64_IRELATIVE)
            continue;
        uintptr_t *address = (uintptr_t *)(object->bias + entry->r_offset);
        if ((uintptr_t)address % sizeof *address)
            continue; /* could not be exchanged at once */
        uintptr_t value = __atomic_load_n(address, __ATOMIC_RELAXED);
        struct tm_slot_place place = {address, hook_of_value(value, tables->groups), 0};
        if (place.hook == TM_NO_HOOK && type == R_X86_64_JUMP_SLOT) {
            place.hook = hook_of_stub(object, tables, entry, value);
            place.lazy = 1;
        }
        if (place.hook != TM_NO_HOOK && lies_in(object, (uintptr_t)address, sizeof *address, PF_W) && !found(&place, data))
            return 0;
    }
    return 1;
}

void tm_each_slot(const struct tm_object *object, int (*found)(const struct tm_slot_place *, void *), void *data)
{
    struct tables tables;
    if (!read_tables(object, &tables))
        return;
    tables.groups = groups_of(object);
    find_bounds();
    if (visit_entries(object, &tables, tables.general, tables.general_count, found, data))
        visit_entries(object, &tables, tables.calls, tables.call_count, found, data);
}

static uintptr_t *find_named(const struct tm_object *object, const struct tables *tables, const ElfW(Rela) *entry,
                             size_t count, const char *name)
{
    for (; count; count--, entry++) {
        uint32_t type = ELF64_R_TYPE(entry->r_info);
        const ElfW(Sym) *symbol = &tables->symbols[ELF64_R_SYM(entry->r_info)];
        uintptr_t address = object->bias + entry->r_offset;
        if ((type == R_X86_64_GLOB_DAT || type == R_X86_64_JUMP_SLOT) && symbol->st_shndx == SHN_UNDEF &&
            strcmp(tables->names + symbol->st_name, name) == 0 && address % sizeof address == 0 &&
            lies_in(object, address, sizeof address, PF_W))
            return (uintptr_t *)address;
    }
    return NULL;
}

uintptr_t *tm_named_slot(const struct tm_object *object, const char *name)
{
    struct tables tables;
    if (!read_tables(object, &tables))
        return NULL;
    uintptr_t *call = find_named(object, &tables, tables.calls, tables.call_count, name);
    return call ? call : find_named(object, &tables, tables.general, tables.general_count, name);
}
