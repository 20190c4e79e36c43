/* state.c - where the state of the process image and the settings are stored. */
#include "core/state.h"

struct tm_core tm_core TM_IMAGE;
struct tm_settings tm_settings = {.pool = {.kept_descriptor = -1}};

int tm_armed(void)
{
    return __atomic_load_n(&tm_core.phase, __ATOMIC_ACQUIRE) == TM_PHASE_ARMED;
}

uint32_t tm_incarnation(void)
{
    return tm_core.incarnation;
}
