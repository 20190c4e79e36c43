/* objects_check.c - what a sampling point checks from time to time: which objects were loaded in the meantime,
 * and whether Python's hooks are still set.
 */
#include "core/state.h"
#include "hooks/python_hooks.h"
#include "lifecycle/arming.h"
#include "process/loader.h"
#include "process/objects.h"
#include "sampling/lifecycle.h"
#include "stacks/native.h"

#define OBJECTS_CHECK_MS 10

void tm_check_objects(uint64_t now_ms)
{
    uint64_t last = __atomic_load_n(&tm_core.objects_checked_ms, __ATOMIC_RELAXED);
    if (now_ms - last < OBJECTS_CHECK_MS ||
        !__atomic_compare_exchange_n(&tm_core.objects_checked_ms, &last, now_ms, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
        if (tm_settings.python_state == TM_PYTHON_FRAMES_ONLY)
            tm_python_verify(); /* a short program may have no later check */
        return;
    }
    uint64_t changes = tm_loader_is_safe() ? tm_object_changes() : tm_core.object_changes;
    int changed = __atomic_exchange_n(&tm_core.object_changes, changes, __ATOMIC_RELAXED) != changes;
    if (changed) {
        tm_python_probe();
        tm_native_refresh();
    }
    tm_update_slots(changed);
    tm_python_verify();
}
