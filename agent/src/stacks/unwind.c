/* unwind.c - native stacks: libgcc's unwinder, stopped before it leaves the stack.
 *
 * The unwinder trusts every word that it reads. That is safe on a stack that grew call by
 * call. A greenlet's stack did not: its frames begin in the middle of its parent's, below those of
 * the library that started it, and the memory beyond was overwritten by other greenlets:
 *
 *     evaluator, functions of the program      this greenlet's own
 *     greenlet: its first function             likewise; it never returns
 *     ...                                      leftovers of another greenlet: not return addresses
 *
 * So a walk ends at the first frame of such a library, which backtrace(3) cannot do. backtrace(3) is only used
 * to load libgcc_s at the start, where that may still allocate and lock.
 */
#include <execinfo.h>
#include <string.h>
#include <unwind.h>

#include "core/core.h"
#include "process/objects.h"
#include "stacks/native.h"

#define SWITCHER_COUNT 8u

typedef _Unwind_Reason_Code walk_function(_Unwind_Trace_Fn, void *);
typedef _Unwind_Ptr address_function(struct _Unwind_Context *);
typedef _Unwind_Word frame_function(struct _Unwind_Context *);

static struct {
    walk_function *walk;
    address_function *address;
    frame_function *frame;
} unwinder;

/* Libraries that switch stacks. Written under the core lock, `used` last; read without it. */
static struct __attribute__((aligned(TM_PAGE))) {
    struct {
        uintptr_t start, end;
    } places[SWITCHER_COUNT];
    uint32_t used;
} switchers TM_WIPED;

static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static int find_unwinder(const struct tm_object *object, void *data)
{
    (void)data;
    if (strncmp(file_name(object->path), "libgcc_s", 8) != 0)
        return 0;
    unwinder.address = (address_function *)tm_object_symbol(object, "_Unwind_GetIP");
    unwinder.frame = (frame_function *)tm_object_symbol(object, "_Unwind_GetCFA");
    unwinder.walk = (walk_function *)tm_object_symbol(object, "_Unwind_Backtrace");
    return 1;
}

void tm_unwind_begin(void)
{
    void *loads[2];
    backtrace(loads, 2);
    tm_each_object(find_unwinder, NULL);
}

void tm_unwind_object(const struct tm_object *object)
{
    if (!strstr(file_name(object->path), "greenlet"))
        return;
    uint32_t used = switchers.used;
    for (uint32_t i = 0; i < used; i++)
        if (switchers.places[i].start == object->start && switchers.places[i].end == object->end)
            return;
    uint32_t at = used < SWITCHER_COUNT ? used : SWITCHER_COUNT - 1;
    __atomic_store_n(&switchers.places[at].start, object->start, __ATOMIC_RELAXED);
    __atomic_store_n(&switchers.places[at].end, object->end, __ATOMIC_RELAXED);
    __atomic_store_n(&switchers.used, at + 1, __ATOMIC_RELEASE);
}

static int is_switcher(uintptr_t pc)
{
    uint32_t used = __atomic_load_n(&switchers.used, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < used; i++)
        if (pc >= __atomic_load_n(&switchers.places[i].start, __ATOMIC_RELAXED) &&
            pc < __atomic_load_n(&switchers.places[i].end, __ATOMIC_RELAXED))
            return 1;
    return 0;
}

struct walk {
    void **pcs;
    unsigned count;
    uintptr_t last_pc, last_frame;
};

static _Unwind_Reason_Code step(struct _Unwind_Context *context, void *data)
{
    struct walk *walk = data;
    uintptr_t pc = unwinder.address(context), frame = unwinder.frame(context);
    if (pc == 0 || (pc == walk->last_pc && frame == walk->last_frame)) /* the end, or the walk cannot continue */
        return _URC_NORMAL_STOP;
    walk->pcs[walk->count++] = (void *)pc;
    walk->last_pc = pc;
    walk->last_frame = frame;
    return walk->count == TM_NATIVE_FRAMES || is_switcher(pc - 1) ? _URC_NORMAL_STOP : _URC_NO_REASON;
}

unsigned tm_unwind(void *pcs[TM_NATIVE_FRAMES])
{
    struct walk walk = {.pcs = pcs};
    if (unwinder.walk)
        unwinder.walk(step, &walk);
    return walk.count;
}
