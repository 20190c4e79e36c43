/* loader.c - whether the list of loaded objects can be read without a deadlock.
 *
 * dl_iterate_phdr() takes a lock of the dynamic loader. fork() copies that lock as it is: if another thread of
 * the parent held it at that moment, no thread of the child will ever release it, and a child that only
 * allocates memory would hang in our slow path. So a forked image checks the lock first. The lock is in
 * _rtld_global (ld.so's own data, exported under GLIBC_PRIVATE), at an offset that differs by version. It is
 * found once, at start, while this thread holds it:
 *
 *   word 0   futex    0 free, 1 held        (struct __pthread_mutex_s of glibc, x86-64)
 *   word 1   count    depth of the holder
 *   word 2   owner    thread id of the holder
 *
 * If it is not found (other versions, no such mutex), forked images do not read the list: their native frames
 * then have no object, and nothing else is lost.
 */
#include <string.h>

#include "core/state.h"
#include "core/system.h"
#include "process/loader.h"
#include "process/objects.h"

#define LARGEST_RTLD_GLOBAL 16384u

static const uint32_t *lock_word;

struct suspect {
    const uint32_t *words;
    size_t count;
    uint32_t before[LARGEST_RTLD_GLOBAL / sizeof(uint32_t)];
};

static int find_data(const struct tm_object *object, void *data)
{
    struct suspect *suspect = data;
    size_t size = 0;
    const void *found = tm_object_symbol_sized(object, "_rtld_global", &size);
    if (!found || size > LARGEST_RTLD_GLOBAL)
        return 0;
    suspect->words = found;
    suspect->count = size / sizeof(uint32_t);
    return 1;
}

static int find_held(const struct tm_object *object, void *data)
{
    (void)object;
    const struct suspect *suspect = data;
    const volatile uint32_t *words = suspect->words;
    uint32_t own = tm_own_tid();
    for (size_t i = 0; i + 2 < suspect->count; i++)
        if (suspect->before[i] == 0 && words[i] == 1 && words[i + 1] == 1 && suspect->before[i + 2] == 0 &&
            words[i + 2] == own)
            lock_word = &suspect->words[i];
    return 1;
}

void tm_loader_begin(void)
{
    struct suspect suspect = {.words = NULL};
    if (!tm_each_object(find_data, &suspect))
        return;
    memcpy(suspect.before, suspect.words, suspect.count * sizeof(uint32_t));
    tm_each_object(find_held, &suspect);
}

int tm_loader_is_safe(void)
{
    if (tm_core.is_first)
        return 1; /* not forked: the thread that holds the lock is running */
    return lock_word && __atomic_load_n(lock_word, __ATOMIC_RELAXED) == 0;
}
