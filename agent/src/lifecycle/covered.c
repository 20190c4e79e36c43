/* covered.c - detects another tool's functions in the place of ours.
 *
 * A tool that wraps malloc in a running program writes its functions into the same slots as we do: over ours, or
 * before we arrive. Some tools call what they found there. Others (memray) call the C library, and restore the
 * C library's functions when they leave, whatever they found: then we miss the ends of what we sampled, and live
 * figures would only grow. The slots through which the interpreter itself calls malloc() and free() show which:
 *
 *   ours              we see the calls
 *   the program's     if ours was there, the loader has resolved the slot over it, and only known slots are
 *                     written again. Otherwise another tool has left, which may have been there before us:
 *                     every slot is searched and rewritten
 *   anything else     is called, up to three times: does each call reach us? If not, we are covered: nothing is
 *                     sampled, and the live samples end here
 *
 * The other tool's slots are left alone: wrappers over wrappers cannot be removed in an arbitrary order.
 */
#include "core/lock.h"
#include "core/state.h"
#include "core/system.h"
#include "hooks/hook_table.h"
#include "hooks/hooks.h"
#include "lifecycle/arming.h"
#include "live/live.h"
#include "process/loader.h"
#include "process/objects.h"
#include "sampling/lifecycle.h"
#include "sampling/sampling.h"
#include "segment/sections.h"
#include "slots/slots.h"

static struct {
    uintptr_t object;    /* where the interpreter's object starts */
    uintptr_t *malloc, *free; /* its slots; NULL: it has none */
    uintptr_t judged;    /* (atomic) a stranger in its slot of free, called before */
    uint32_t was_ours;   /* (atomic) its slot of free has contained ours, and no tool has covered us since */
} watched;

static int find_slots(const struct tm_object *object, void *unused)
{
    (void)unused;
    if (!tm_object_symbol(object, "_PyRuntime"))
        return 0;
    watched.object = object->start;
    watched.malloc = tm_named_slot(object, "malloc");
    watched.free = tm_named_slot(object, "free");
    return 1;
}

void tm_cover_begin(void)
{
    watched.malloc = watched.free = NULL;
    __atomic_store_n(&watched.judged, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&tm_is_covered, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&watched.was_ours, 0, __ATOMIC_RELAXED);
    if (tm_is_loaded_late())
        tm_each_object(find_slots, NULL);
}

struct reading {
    uintptr_t malloc, free;
    int is_stub; /* the loader's, which has not been called yet */
};

/* In the loader's walk, because the interpreter's object may be unloaded at any other time. */
static int read_slots(const struct tm_object *object, void *data)
{
    struct reading *reading = data;
    if (object->start != watched.object)
        return 0;
    reading->malloc = __atomic_load_n(watched.malloc, __ATOMIC_RELAXED);
    reading->free = __atomic_load_n(watched.free, __ATOMIC_RELAXED);
    reading->is_stub = reading->free >= object->start && reading->free < object->end;
    return 1;
}

/* As the interpreter would call them at this point. */
static int call_reaches_us(const struct reading *reading)
{
    uint64_t left = tm_own_thread.countdown;
    tm_own_thread.countdown = TM_HELD;
    void *block = ((void *(*)(size_t))reading->malloc)(1);
    int reached = tm_own_thread.countdown != TM_HELD;
    ((void (*)(void *))reading->free)(block);
    tm_own_thread.countdown = left;
    return reached;
}

/* A tool that goes around us may still reach us once, for a buffer of its own. */
static int reaches_us(const struct reading *reading)
{
    for (int calls = 0; calls < 3; calls++)
        if (!call_reaches_us(reading))
            return 0;
    return 1;
}

static void end_all(void)
{
    if (!tm_lock())
        return;
    uint64_t now = tm_now_ms();
    for (uint32_t slot = 0; slot < tm_core.rooms[TM_SECTION_LIVE].count; slot++) {
        const struct tm_live *record = tm_at(TM_SECTION_LIVE, slot);
        if (record->address)
            tm_live_free((const void *)record->address, now);
    }
    tm_unlock();
}

static void judge(const struct reading *reading)
{
    if (__atomic_exchange_n(&watched.judged, reading->free, __ATOMIC_RELAXED) == reading->free || reaches_us(reading))
        return;
    __atomic_store_n(&tm_is_covered, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&watched.was_ours, 0, __ATOMIC_RELAXED);
    tm_set_limit(TM_LIMIT_COVERED);
    end_all();
}

/* The caller is inside the agent. */
static void check(void)
{
    const struct tm_hook *hook = &tm_hooks[TM_HOOK_FREE];
    struct reading reading;
    int is_read = tm_each_object(read_slots, &reading);
    int has_left = is_read && (reading.free == (uintptr_t)hook->real || reading.is_stub);
    if (has_left && __atomic_load_n(&watched.was_ours, __ATOMIC_RELAXED)) {
        tm_update_slots(1); /* the loader resolved it */
    } else if (has_left) {
        tm_rewrite_slots();
        is_read = tm_each_object(read_slots, &reading);
    }
    if (!is_read) {
        watched.free = NULL; /* unloaded */
    } else if (reading.free == (uintptr_t)hook->ours) {
        __atomic_store_n(&watched.judged, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&tm_is_covered, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&watched.was_ours, 1, __ATOMIC_RELAXED);
    } else if (!has_left) {
        judge(&reading);
    }
}

void tm_cover_end(void)
{
    if (watched.malloc && watched.free)
        check();
}

void tm_check_covered(void)
{
    if (!watched.malloc || !watched.free || tm_own_thread.inside || !tm_armed() || !tm_loader_is_safe())
        return;
    tm_own_thread.inside++;
    check();
    tm_own_thread.inside--;
}
