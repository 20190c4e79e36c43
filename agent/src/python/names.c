/* names.c - ends samples that stay live only because they were sampled.
 *
 * From 3.10 on, the interpreter's method cache is indexed by the address of the name that was looked up, and keeps
 * the name until another one takes its entry:
 *
 *   PyInterpreterState.type_cache    version | name | value    4096 entries; name: Py_None if unused
 *
 * In code that makes a new name for every lookup (getattr with an f-string; PyObject_GetAttrString in pybind11,
 * Numba), nearly all names are at a few addresses, and each replaces the one before. A sampled name is at another
 * address (it comes from malloc, not from a pool), in an entry that no other name uses, and stays: thousands of
 * samples, each counted for as many names as are made between two samples. In fact a name ends with its lookup. So a
 * sample that only the cache refers to is treated as if it had ended when it was made.
 */
#include "core/state.h"
#include "live/live.h"
#include "python/python.h"
#include "python/state.h"
#include "segment/sections.h"

/* Whoever samples pays for a pass over the cache. */
#define CHECK_MS 250
/* Sampled names in the cache, which has 4096 places. They must all fit: names that the program keeps stay in the cache,
 * and the same ones would take all the room in every pass. */
#define FOUND_COUNT 8192u

static uint64_t checked_ms;
static int is_unknown; /* the memory there is no such cache: left alone from then on */

/* A name that was looked up in several types has that many entries. */
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
    struct tm_live taken;
    uint32_t slot = tm_live_slot(name);
    if (slot >= tm_core.rooms[TM_SECTION_LIVE].count)
        return;
    /* It has a record: so its block has not been freed, and may be read. */
    const struct tm_live *record = tm_at(TM_SECTION_LIVE, slot);
    if (record->bytes >= tm_python.layout.unicode_ascii_size && tm_type_of(name) == tm_python.unicode_type &&
        references(name) == places && tm_live_take(name, &taken))
        tm_live_end(&taken, taken.birth_ms);
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
