/* names.c - ends samples of names that stay live only because they were sampled.
 *
 * From 3.10 on, the interpreter's method cache is indexed by the address of the name that was looked up, and keeps
 * the name until another name replaces its entry:
 *
 *   PyInterpreterState.type_cache    version | name | value    4096 entries; name: Py_None if unused
 *
 * Some code creates a new name for every lookup (getattr with an f-string; PyObject_GetAttrString in pybind11,
 * Numba). Nearly all such names are at a few addresses, and each replaces the previous one. A sampled name is at
 * another address (it comes from malloc, not from a pool), in an entry that no other name uses, so it stays. That
 * would be thousands of live samples, each with the weight of all names created between two samples, although the
 * names live only as long as their lookup. So a sample that only the cache refers to is treated as if it had been
 * freed when it was taken.
 */
#include "core/state.h"
#include "live/live.h"
#include "python/python.h"
#include "python/state.h"
#include "segment/sections.h"

/* The sampling thread pays for a pass over the cache. */
#define CHECK_MS 250
/* Sampled names in the cache, which has 4096 entries. All of them must fit: names that the program keeps stay in
 * the cache, and would otherwise fill the table in every pass. */
#define FOUND_COUNT 8192u

static uint64_t checked_ms;
static int is_unknown; /* no such cache at that address: not checked again */

/* A name that was looked up in several types has one entry for each. */
static struct {
    const char *name;
    uint32_t places;
} found[FOUND_COUNT];
static uint32_t used; /* of it */

static void add_place(const char *name)
{
    uint32_t at = (uint32_t)((uintptr_t)name >> 4) % FOUND_COUNT;
    while (found[at].name && found[at].name != name)
        at = (at + 1) % FOUND_COUNT;
    if (!found[at].name) {
        if (used >= FOUND_COUNT / 4 * 3)
            return;
        found[at].name = name;
        found[at].places = 0;
        used++;
    }
    found[at].places++;
}

/* The reference count of an object; 3.14+ has flags in the upper half. */
static uint32_t references(const char *object)
{
    return (uint32_t)tm_int_at(object, 0);
}

static void end_unless_used(const char *name, uint32_t places)
{
    uint32_t slot = tm_live_slot(name);
    if (slot >= tm_core.rooms[TM_SECTION_LIVE].count)
        return;
    /* It has a record, so its block has not been freed and may be read. */
    const struct tm_live *record = tm_at(TM_SECTION_LIVE, slot);
    if (record->bytes >= tm_python.layout.unicode_ascii_size && tm_type_of(name) == tm_python.unicode_type &&
        references(name) == places)
        tm_live_free(name, record->birth_ms);
}

void tm_python_end_cached_names(uint64_t now_ms)
{
    const struct tm_python_layout *layout = &tm_python.layout;
    if (now_ms - checked_ms < CHECK_MS || is_unknown || layout->method_cache == 0)
        return;
    checked_ms = now_ms;
    const char *thread = tm_python_hold_thread();
    if (!thread || atomic_load_explicit(&tm_python.trust, memory_order_relaxed) != TM_TRUST_PROVEN)
        return;
    const char *interpreter = tm_pointer_at(thread, layout->thread_interpreter);
    const char *cache = interpreter + layout->method_cache;
    if (used)
        memset(found, 0, sizeof found);
    used = 0;
    for (unsigned i = 0; i < layout->method_cache_places; i++) {
        const char *name = tm_pointer_at(cache + (size_t)i * layout->method_cache_place, layout->method_cache_name);
        if (!name || (uintptr_t)name % 8) {
            is_unknown = 1;
            return;
        }
        if (tm_maybe_sampled(name))
            add_place(name);
    }
    for (uint32_t i = 0; used && i < FOUND_COUNT; i++)
        if (found[i].name)
            end_unless_used(found[i].name, found[i].places);
}
