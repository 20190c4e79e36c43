/* native.c - native frames: which object contains a return address, and whole stacks.
 *
 * The table of objects is guarded by the core lock. It is filled from inside the loader's
 * walk, which holds the loader's list lock: the core lock is taken inside that one, never the other
 * way round. A removed object stays in the table until another replaces it.
 */
#include <string.h>
#include <unistd.h>

#include "core/lock.h"
#include "core/state.h"
#include "process/loader.h"
#include "process/objects.h"
#include "segment/intern.h"
#include "stacks/native.h"

struct object {
    uintptr_t start, end, bias;
    uint32_t file;
};
struct cached_pc {
    uintptr_t pc;
    uint32_t frame;
    uint32_t generation;
};
static struct __attribute__((aligned(TM_PAGE))) {
    struct object objects[TM_OBJECT_COUNT]; /* sorted by start, disjoint */
    struct cached_pc cache[TM_NATIVE_CACHE];
    uint64_t changes; /* (atomic) of the loader's list, as of the last walk through it */
    uint32_t count;
    uint32_t generation; /* of the table, for the cache; an unused cache entry has pc 0 */
} table TM_WIPED;
static char executable[512];

static uint32_t position(uintptr_t pc)
{
    uint32_t low = 0, high = table.count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (table.objects[middle].end <= pc)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static const struct object *find(uintptr_t pc)
{
    uint32_t at = position(pc);
    return at < table.count && table.objects[at].start <= pc ? &table.objects[at] : NULL;
}

/* (locked) */
static void insert(const struct tm_object *found)
{
    uint32_t at = position(found->start), after = at;
    const struct object *known = at < table.count ? &table.objects[at] : NULL;
    if (known && known->start == found->start && known->end == found->end && known->bias == found->bias)
        return; /* the same place and size: only a removal in between would distinguish them */
    while (after < table.count && table.objects[after].start < found->end)
        after++; /* the object that was here was removed */
    if (table.count - (after - at) >= TM_OBJECT_COUNT)
        return;
    memmove(&table.objects[at + 1], &table.objects[after], (table.count - after) * sizeof table.objects[0]);
    const char *path = found->path[0] ? found->path : executable;
    table.count += 1 - (after - at);
    table.objects[at] = (struct object){found->start, found->end, found->bias, tm_intern_string(path, strlen(path))};
    table.generation++;
}

static int visit(const struct tm_object *object, void *data)
{
    (void)data;
    if (!tm_lock())
        return 1;
    tm_unwind_object(object);
    insert(object);
    tm_unlock();
    return 0;
}

void tm_native_refresh(void)
{
    if (!tm_loader_is_safe())
        return;
    uint64_t changes = tm_object_changes();
    if (tm_each_object(visit, NULL) == 0)
        __atomic_store_n(&table.changes, changes, __ATOMIC_RELEASE);
}

int tm_native_knows(const void *pc)
{
    return find((uintptr_t)pc - 1) != NULL;
}

uint32_t tm_native_intern(const void *pc)
{
    uintptr_t call = (uintptr_t)pc - 1; /* inside the call instruction, not after it */
    struct cached_pc *cached = &table.cache[(call ^ call >> 12) % TM_NATIVE_CACHE];
    if (cached->pc == call && cached->generation == table.generation)
        return cached->frame;
    const struct object *object = find(call);
    uint32_t frame = object ? tm_intern_native_frame(object->file, call - object->bias)
                            : tm_intern_mark("code outside any object file");
    if (frame != TM_NONE)
        *cached = (struct cached_pc){call, frame, table.generation};
    return frame;
}

void tm_native_begin(int backtraces)
{
    ssize_t length = readlink("/proc/self/exe", executable, sizeof executable - 1);
    executable[length > 0 ? length : 0] = 0;
    if (backtraces)
        tm_unwind_begin();
}

/* The bounds of this library, defined by the linker. */
extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char _end[] __attribute__((visibility("hidden")));

static int is_own(const void *pc)
{
    return (const char *)pc >= __ehdr_start && (const char *)pc < _end;
}

/* The agent's own frames are identified by address: there may be no return address (small
 * Python objects), and Python's hooks are between two of its frames, or are the return
 * address themselves if one of Python's allocators jumps to malloc. */
unsigned tm_native_backtrace(void *pcs[TM_NATIVE_FRAMES], const void *return_address)
{
    if (!tm_loader_is_safe())
        return 0; /* before glibc 2.35 unwinding asks the loader, too */
    /* A walk must not pass through an object that has not been examined (the reason is in unwind.c). */
    if (__atomic_load_n(&table.changes, __ATOMIC_ACQUIRE) != tm_object_changes())
        tm_native_refresh();
    unsigned count = tm_unwind(pcs), first = 0;
    while (first < count && pcs[first] != return_address)
        first++;
    if (first == count)
        first = 0;
    unsigned kept = 0;
    for (unsigned i = first; i < count; i++)
        if (!is_own(pcs[i]))
            pcs[kept++] = pcs[i];
    return kept;
}
