/* slots.c - writes our functions into the slots of loaded objects, and restores them.
 *
 * Possible problems, and their solutions:
 *
 *   an object is unloaded     all work is done inside the loader's walk, whose lock unloading needs; a
 *                             slot is touched only if its object was met in the same walk
 *   an object is being        the loader lists it before it has relocated it, and makes its RELRO
 *   loaded                    part read-only at the end. We would make it read-only too early, or fault
 *                             after the loader has: so an object whose RELRO may still be written waits.
 *                             One that has waited for a second was made writable by another tool
 *   the loader resolves a     it may overwrite ours at any time: every pass writes lazy slots again
 *   lazy slot
 *   another tool changes      a word that does not hold the real address is not written, a word that does
 *   the same slot             not hold ours is not restored; always one compare and exchange
 *   fork in the middle        a record is made before its slot is written; children share the rest
 */
#include <errno.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/system.h"
#include "hooks/hook_table.h"
#include "hooks/hooks.h"
#include "process/objects.h"
#include "segment.h"
#include "slots/slots.h"

#define OBJECT_BOUND 4096u
#define SLOT_BOUND 65536u
#define WAIT_MS 1000u

struct known_object {
    uintptr_t bias, start, end;
    uint64_t path_hash;
    uintptr_t guarded_start, guarded_end; /* whole pages that the loader made read-only; equal: none */
    uint64_t seen_ms;                     /* when it was first seen */
    uint32_t first, count;                /* number of its slots */
    uint32_t walk;                        /* the walk in which it was last seen */
    uint8_t waiting;                      /* unknown whether the loader is done with it */
};

struct known_slot {
    uintptr_t *address;
    uintptr_t before;
    uint32_t object;
    uint8_t hook;
    uint8_t lazy;
};

static struct known_object objects[OBJECT_BOUND];
static struct known_slot slots[SLOT_BOUND];
static uint32_t object_count, slot_count, walk_number, waiting_count;
static uint64_t look_again_ms; /* (atomic) 0: no need */

/* ---- writing ------------------------------------------------------------------------------ */

static int protect(const struct known_object *object, int protection)
{
    return (int)syscall(SYS_mprotect, object->guarded_start, object->guarded_end - object->guarded_start, protection);
}

static int is_guarded(const struct known_object *object, const struct known_slot *slot)
{
    uintptr_t address = (uintptr_t)slot->address;
    return !object->waiting && address >= object->guarded_start && address < object->guarded_end;
}

/* An allocator other than the C library's is in use: a restored stub could resolve to a different one than before. */
static uintptr_t value_to_restore(const struct known_slot *slot)
{
    uintptr_t start, end;
    return slot->lazy && tm_foreign_allocator(&start, &end) ? (uintptr_t)tm_hooks[slot->hook].real : slot->before;
}

/* 1: the slot contains what it should, or may not be changed. 0: its page is protected. */
static int write_slot(struct known_slot *slot, int restore, int open)
{
    const struct tm_hook *hook = &tm_hooks[slot->hook];
    uintptr_t ours = (uintptr_t)hook->ours, real = (uintptr_t)hook->real;
    uintptr_t now = __atomic_load_n(slot->address, __ATOMIC_RELAXED);
    uintptr_t wanted = restore ? value_to_restore(slot) : ours;
    if (restore ? now != ours : now != real && now != slot->before)
        return 1;
    if (!open)
        return 0;
    if (!restore)
        slot->before = now; /* the loader may have resolved it in the meantime */
    __atomic_compare_exchange_n(slot->address, &now, wanted, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
    if (slot->lazy && !restore)
        __atomic_store_n(&look_again_ms, tm_now_ms() + WAIT_MS, __ATOMIC_RELAXED);
    return 1;
}

/* Writes or restores one group of an object's slots. Returns the number that had to stay. */
static uint32_t write_object(const struct known_object *object, enum tm_slot_group group, int restore)
{
    uint32_t closed = 0;
    for (uint32_t i = object->first; i < object->first + object->count; i++)
        if (tm_hooks[slots[i].hook].group == group)
            closed += !write_slot(&slots[i], restore, !is_guarded(object, &slots[i]));
    if (!closed || protect(object, PROT_READ | PROT_WRITE) != 0)
        return closed;
    for (uint32_t i = object->first; i < object->first + object->count; i++)
        if (tm_hooks[slots[i].hook].group == group)
            write_slot(&slots[i], restore, 1);
    protect(object, PROT_READ);
    return 0;
}

/* ---- new objects -------------------------------------------------------------------------------- */

struct walk {
    enum tm_slot_group group;
    int why;
    uint32_t stayed;
    uint32_t next; /* the object that probably comes next: the loader's order hardly changes */
    uint64_t now_ms;
};

static uint64_t hash_path(const char *path)
{
    uint64_t hash = 0xcbf29ce484222325ull; /* FNV-1a */
    for (; *path; path++)
        hash = (hash ^ (unsigned char)*path) * 0x100000001b3ull;
    return hash;
}

static struct known_object *find_known(const struct tm_object *object, struct walk *walk)
{
    uint64_t hash = hash_path(object->path);
    for (uint32_t tried = 0; tried < object_count; tried++) {
        uint32_t at = (walk->next + tried) % object_count;
        struct known_object *known = &objects[at];
        if (known->bias != object->bias || known->start != object->start || known->end != object->end ||
            known->path_hash != hash)
            continue;
        walk->next = at + 1;
        return known;
    }
    return NULL;
}

static void find_guarded(const struct tm_object *object, struct known_object *known)
{
    const ElfW(Phdr) *headers = object->program_headers;
    for (uint32_t i = 0; i < object->program_header_count; i++) {
        if (headers[i].p_type != PT_GNU_RELRO)
            continue;
        uintptr_t start = object->bias + headers[i].p_vaddr, end = start + headers[i].p_memsz;
        known->guarded_start = start & ~(uintptr_t)(TM_PAGE - 1);
        known->guarded_end = end & ~(uintptr_t)(TM_PAGE - 1);
    }
    if (known->guarded_end < known->guarded_start)
        known->guarded_end = known->guarded_start;
}

static int add_slot(const struct tm_slot_place *place, void *data)
{
    if (slot_count == SLOT_BOUND)
        return 0;
    struct known_object *object = data;
    slots[slot_count] = (struct known_slot){
        .address = place->address,
        .before = *place->address,
        .object = (uint32_t)(object - objects),
        .hook = place->hook,
        .lazy = place->lazy,
    };
    object->count++;
    slot_count++;
    return 1;
}

/* An object that does not fit completely is skipped completely: its allocations and frees are not seen. */
static void find_slots(const struct tm_object *object, struct known_object *known)
{
    known->first = slot_count;
    known->count = 0;
    tm_each_slot(object, add_slot, known);
    if (slot_count == SLOT_BOUND) {
        slot_count = known->first;
        known->count = 0;
    }
}

/* Checks whether the loader is done with it, and if so which slots it has. */
static void settle(const struct tm_object *object, struct known_object *known, struct walk *walk)
{
    if (known->guarded_start != known->guarded_end) {
        int writable = tm_is_writable(known->guarded_start);
        if (writable < 0) {
            walk->why = -writable;
            return;
        }
        if (writable) {
            if (walk->now_ms - known->seen_ms < WAIT_MS)
                return;
            known->guarded_end = known->guarded_start; /* another tool made it writable on purpose */
        }
    }
    known->waiting = 0;
    find_slots(object, known);
}

static struct known_object *meet(const struct tm_object *object, struct walk *walk)
{
    if (object_count == OBJECT_BOUND)
        return NULL;
    struct known_object *known = &objects[object_count];
    *known = (struct known_object){.bias = object->bias,
                                   .start = object->start,
                                   .end = object->end,
                                   .path_hash = hash_path(object->path),
                                   .seen_ms = walk->now_ms,
                                   .waiting = 1};
    find_guarded(object, known);
    object_count++;
    return known;
}

static int is_own(const struct tm_object *object)
{
    return (uintptr_t)objects >= object->start && (uintptr_t)objects < object->end;
}

static int visit_to_write(const struct tm_object *object, void *data)
{
    struct walk *walk = data;
    if (is_own(object))
        return 0;
    struct known_object *known = find_known(object, walk);
    if (!known && walk->group == TM_SLOTS_ENDS)
        known = meet(object, walk);
    if (!known)
        return 0;
    known->walk = walk_number;
    if (known->waiting && walk->group == TM_SLOTS_ENDS)
        settle(object, known, walk);
    if (!known->waiting && write_object(known, walk->group, 0) != 0) {
        /* Its pages cannot be made writable: it is skipped completely, like one that does not fit. */
        write_object(known, TM_SLOTS_COPIES, 1);
        write_object(known, TM_SLOTS_BEGINNINGS, 1);
        write_object(known, TM_SLOTS_ENDS, 1);
        known->count = 0;
        walk->stayed++;
    }
    return walk->why;
}

static int visit_to_restore(const struct tm_object *object, void *data)
{
    struct walk *walk = data;
    struct known_object *known = is_own(object) ? NULL : find_known(object, walk);
    if (known && !known->waiting)
        walk->stayed += write_object(known, walk->group, 1);
    return 0;
}

static int is_kept(const struct known_object *object)
{
    return object->walk == walk_number;
}

/* Slots of one object are adjacent, but not in the order of the objects: an object that waited comes late. */
static void drop_slots(void)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < slot_count; i++) {
        struct known_object *object = &objects[slots[i].object];
        if (!is_kept(object) || object->count == 0)
            continue;
        if (object->first == i)
            object->first = kept;
        slots[kept++] = slots[i];
    }
    slot_count = kept;
}

/* Drops objects that were unloaded. */
static void forget_unmet(void)
{
    uint32_t kept = 0, waiting = 0;
    drop_slots();
    for (uint32_t i = 0; i < object_count; i++) {
        if (!is_kept(&objects[i]))
            continue;
        for (uint32_t s = objects[i].first; s < objects[i].first + objects[i].count; s++)
            slots[s].object = kept;
        waiting += objects[i].waiting;
        objects[kept++] = objects[i];
    }
    __atomic_store_n(&waiting_count, waiting, __ATOMIC_RELAXED);
    object_count = kept;
}

int tm_slots_write(enum tm_slot_group group)
{
    struct walk walk = {.group = group, .now_ms = tm_now_ms()};
    walk_number++;
    if (group == TM_SLOTS_ENDS)
        __atomic_store_n(&look_again_ms, 0, __ATOMIC_RELAXED);
    tm_each_object(visit_to_write, &walk);
    tm_protection_end();
    if (!walk.why)
        forget_unmet();
    if (walk.stayed)
        tm_log("%u loaded objects cannot be written: what they allocate is not seen", walk.stayed);
    return walk.why ? walk.why : walk.stayed && !slot_count ? EACCES : 0;
}

int tm_slots_due(void)
{
    uint64_t again = __atomic_load_n(&look_again_ms, __ATOMIC_RELAXED);
    return __atomic_load_n(&waiting_count, __ATOMIC_RELAXED) || (again && tm_now_ms() >= again);
}

uint32_t tm_slots_restore(enum tm_slot_group group)
{
    struct walk walk = {.group = group};
    tm_each_object(visit_to_restore, &walk);
    return walk.stayed;
}

void tm_slots_forget(void)
{
    object_count = slot_count = 0;
    __atomic_store_n(&waiting_count, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&look_again_ms, 0, __ATOMIC_RELAXED);
}

struct tm_slot_counts tm_slots_count(void)
{
    struct tm_slot_counts counts = {.waiting = waiting_count, .slots = slot_count};
    for (uint32_t i = 0; i < object_count; i++)
        counts.objects += objects[i].count != 0;
    return counts;
}
