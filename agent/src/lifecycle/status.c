/* status.c - reports the state of the agent as JSON (agent/README.md, "Attaching to a running interpreter"). */
#include <string.h>

#include "core/lock.h"
#include "core/state.h"
#include "core/system.h"
#include "hooks/hooks.h"
#include "lifecycle/arming.h"
#include "sampling/lifecycle.h"
#include "sampling/sampling.h"
#include "slots/slots.h"

struct writer {
    char *text;
    size_t length, capacity;
};

static void put(struct writer *writer, const char *text, size_t length)
{
    for (size_t i = 0; i < length && writer->length + 1 < writer->capacity; i++)
        writer->text[writer->length++] = text[i];
}

static void put_text(struct writer *writer, const char *text)
{
    put(writer, text, strlen(text));
}

static void put_quoted(struct writer *writer, const char *text, size_t length)
{
    put_text(writer, "\"");
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)text[i];
        char escaped[8] = {(char)c, 0};
        if (c == '"' || c == '\\')
            tm_format(escaped, sizeof escaped, "\\%s", c == '"' ? "\"" : "\\");
        else if (c == '\n')
            strcpy(escaped, "\\n");
        else if (c < 0x20)
            tm_format(escaped, sizeof escaped, "\\u00%x%x", c >> 4, c & 15u);
        put_text(writer, escaped);
    }
    put_text(writer, "\"");
}

static void put_string(struct writer *writer, const char *name, const char *value)
{
    put_text(writer, name);
    put_quoted(writer, value, strlen(value));
}

static void put_number(struct writer *writer, const char *name, uint32_t value)
{
    char digits[16];
    put(writer, name, strlen(name));
    put(writer, digits, tm_format(digits, sizeof digits, "%u", value));
}

static void put_bytes(struct writer *writer, const char *name, double bytes)
{
    char digits[24];
    size_t count = 0;
    uint64_t value = bytes > 0 ? (uint64_t)(bytes + 0.5) : 0;
    put_text(writer, name);
    do
        digits[count++] = (char)('0' + value % 10);
    while ((value /= 10) != 0);
    while (count)
        put(writer, &digits[--count], 1);
}

/* The figures of the recording so far, including frees that waited for the lock. */
static void put_figures(struct writer *writer, int armed)
{
    if (armed && !tm_own_thread.inside && tm_lock()) {
        tm_own_thread.inside++;
        tm_drain_pending();
        tm_own_thread.inside--;
        tm_unlock();
    }
    const struct tm_segment_header *header = armed ? tm_core.header : NULL;
    uint64_t period = armed ? tm_core.period : 0, coarsest = tm_core.coarsest_period;
    put_bytes(writer, ",\"liveBytes\":", header ? header->live_bytes : 0);
    put_bytes(writer, ",\"peakBytes\":", header ? tm_core.highest_live_bytes : 0);
    put_bytes(writer, ",\"periodBytes\":", (double)period);
    put_bytes(writer, ",\"coarsestPeriodBytes\":", (double)(armed && coarsest > period ? coarsest : period));
}

static void put_run(struct writer *writer, uint64_t run)
{
    char digits[17] = {0};
    for (int i = 15; i >= 0; i--, run >>= 4)
        digits[i] = "0123456789abcdef"[run & 15];
    put_string(writer, ",\"run\":", digits);
}

static const char *state_name(uint32_t phase)
{
    if (phase == TM_PHASE_ARMED)
        return "armed";
    if (__atomic_load_n(&tm_core.unhooking, __ATOMIC_RELAXED))
        return "leaving";
    return phase == TM_PHASE_OFF ? "off" : "inert";
}

static const char *python_name(uint32_t state)
{
    static const char *const names[] = {"none", "full", "frames", "malloc", "refused"};
    return state < sizeof names / sizeof *names ? names[state] : "none";
}

size_t tm_status(char *text, size_t capacity)
{
    struct writer writer = {text, 0, capacity};
    uint32_t phase = __atomic_load_n(&tm_core.phase, __ATOMIC_ACQUIRE);
    const struct tm_pool_place *pool = &tm_settings.pool;
    const struct tm_segment_header *header = phase == TM_PHASE_ARMED || phase == TM_PHASE_OFF ? tm_core.header : NULL;
    tm_check_covered(); /* nothing is sampled under another tool's hooks, so no sample checks it */
    struct tm_slot_counts slots = tm_slots_count();
    char own[64] = "";
    if (pool->kept_descriptor >= 0)
        tm_format(own, sizeof own, "/proc/%u/fd/%d", tm_own_pid(), pool->kept_descriptor);
    put_number(&writer, "{\"version\":", TM_SEGMENT_VERSION);
    put_string(&writer, ",\"state\":", state_name(phase));
    put_string(&writer, ",\"entry\":", tm_is_loaded_late() ? "attached" : "preloaded");
    put_string(&writer, ",\"pool\":", pool->path[0] ? pool->path : own);
    put_run(&writer, header && pool->head ? pool->head->run_id : 0);
    put_number(&writer, ",\"slot\":", tm_core.slot);
    put_number(&writer, ",\"pid\":", tm_own_pid());
    put_string(&writer, ",\"python\":", python_name(tm_settings.python_state));
    put_string(&writer, ",\"pythonVersion\":", tm_settings.python_version);
    put_number(&writer, ",\"objects\":", slots.objects);
    put_number(&writer, ",\"slots\":", slots.slots);
    put_number(&writer, ",\"waiting\":", slots.waiting);
    put_figures(&writer, phase == TM_PHASE_ARMED);
    put_text(&writer, header && header->limits & TM_LIMIT_COVERED ? ",\"covered\":true" : ",\"covered\":false");
    put_text(&writer, ",\"log\":");
    const char *log = header ? header->log : tm_settings.log;
    uint32_t length = header ? header->log_length : tm_settings.log_length;
    put_quoted(&writer, log, length < TM_LOG_BYTES ? length : TM_LOG_BYTES);
    put_text(&writer, "}");
    if (capacity)
        text[writer.length] = 0;
    return writer.length;
}
