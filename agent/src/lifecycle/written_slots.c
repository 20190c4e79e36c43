/* written_slots.c - which slots of loaded objects a recording writes (slots/slots.c).
 *
 *   loaded late   those of the allocator
 *   copies        those of memcpy and memmove, also if the library was preloaded: they are not exported, so that a
 *                 program whose copies are not counted does not call them
 */
#include "core/state.h"
#include "hooks/hook_table.h"
#include "hooks/hooks.h"
#include "lifecycle/arming.h"
#include "slots/slots.h"

static uint32_t chosen; /* (atomic) bits of enum tm_slot_group */

void tm_slots_begin(void)
{
    uint32_t groups = tm_is_loaded_late() ? 1u << TM_SLOTS_ENDS | 1u << TM_SLOTS_BEGINNINGS : 0;
    if (tm_core.options & TM_OPTION_COPIES) {
        groups |= 1u << TM_SLOTS_COPIES;
        tm_copies_begin();
    }
    tm_slots_choose(groups);
    __atomic_store_n(&chosen, groups, __ATOMIC_RELEASE);
}

int tm_slots_are_used(void)
{
    return __atomic_load_n(&chosen, __ATOMIC_ACQUIRE) != 0;
}

void tm_slots_write_all(void)
{
    if (tm_slots_write(TM_SLOTS_ENDS) == 0 && tm_slots_write(TM_SLOTS_BEGINNINGS) == 0)
        tm_slots_write(TM_SLOTS_COPIES);
}
