/* find.c - finds the interpreter in this process, and its layout by version.
 *
 * An object is an interpreter if it defines _PyRuntime and PyGILState_GetThisThreadState.
 * Its own dynamic table is read, not the global scope: a host may have loaded it with
 * RTLD_LOCAL, and may also have loaded an older libpython.
 */
#include "core/system.h"
#include "process/loader.h"
#include "process/objects.h"
#include "python/python.h"
#include "python/state.h"
#include "segment/sections.h"
#include "../../layouts/versions.h"

struct tm_python tm_python;

static const char debug_cookie[8] = "xdebugpy";

/* Larger than any offset in these structures. */
#define LARGEST_OFFSET 4096u

static _Atomic int refused;
static const char *_Atomic refusal;
static uint32_t refusal_limits;

static void log_refusal(void)
{
    const char *why = atomic_load(&refusal);
    if (!why)
        return;
    tm_set_limit(refusal_limits);
    tm_set_python(TM_PYTHON_REFUSED, tm_python.version[0] ? tm_python.version : NULL);
    tm_log("Python %s: %s; its frames are left out", tm_python.version[0] ? tm_python.version : "of unknown version", why);
}

void tm_python_refuse(uint32_t limit_bits, const char *why)
{
    if (atomic_exchange(&refused, 1))
        return;
    atomic_store(&tm_python.trust, TM_TRUST_REFUSED);
    refusal_limits = limit_bits;
    atomic_store(&refusal, why);
    log_refusal();
}

/* Replaces the table's offset with the published one; returns 0 if the value is implausible. Offset 0 is accepted
 * only if the table also has 0. */
static int publish(uint16_t *field, const uint64_t *block, uint16_t slot)
{
    if (block[slot] >= LARGEST_OFFSET || (block[slot] == 0 && *field != 0))
        return 0;
    *field = (uint16_t)block[slot];
    return 1;
}

/* Offsets that the interpreter publishes take precedence over the generated table. `slots` NULL: it publishes none. */
static const char *read_published(const uint64_t *block, const struct tm_published_layout *slots)
{
    struct tm_python_layout *layout = &tm_python.layout;
    if (!slots)
        return NULL;
    if (memcmp(block, debug_cookie, sizeof debug_cookie) != 0)
        return "it does not publish its offsets as its version should";
    if ((block[1] >> 16 & 0xff) != layout->minor)
        return "the offsets it publishes are of another version";
    if (publish(&layout->thread_interpreter, block, slots->thread_interpreter) &&
        publish(&layout->thread_frame, block, slots->thread_current_frame) &&
        publish(&layout->thread_id, block, slots->thread_id) &&
        publish(&layout->frame_previous, block, slots->frame_previous) &&
        publish(&layout->frame_code, block, slots->frame_executable) &&
        publish(&layout->frame_instruction, block, slots->frame_instruction) &&
        publish(&layout->frame_owner, block, slots->frame_owner) &&
        publish(&layout->code_file, block, slots->code_file) &&
        publish(&layout->code_name, block, slots->code_name) &&
        publish(&layout->code_qualified_name, block, slots->code_qualified_name) &&
        publish(&layout->code_lines, block, slots->code_lines) &&
        publish(&layout->code_first_line, block, slots->code_first_line) &&
        publish(&layout->code_bytes, block, slots->code_bytes) &&
        publish(&layout->type_name, block, slots->type_name) &&
        publish(&layout->variable_size, block, slots->bytes_size) &&
        publish(&layout->bytes_data, block, slots->bytes_data) &&
        publish(&layout->unicode_state, block, slots->unicode_state) &&
        publish(&layout->unicode_length, block, slots->unicode_length) &&
        publish(&layout->unicode_ascii_size, block, slots->unicode_ascii_size))
        return NULL;
    return "an offset it publishes is out of bounds";
}

/* Reads a decimal number and advances past it; -1 if there are no digits. */
static int read_number(const char **text)
{
    int value = -1;
    for (; **text >= '0' && **text <= '9' && value < 100000; ++*text)
        value = (value < 0 ? 0 : value * 10) + (**text - '0');
    return value;
}

/* "3.11.7 (main, ...)": returns the minor version, copies "3.11.7"; -1 if it is not a version. An
 * alpha or beta ("3.15.0a7+") may have any layout, so it also returns -1. */
static int read_version(const char *text)
{
    size_t length = strcspn(text, " ");
    if (length >= sizeof tm_python.version)
        length = sizeof tm_python.version - 1;
    memcpy(tm_python.version, text, length);
    tm_python.version[length] = '\0';

    if (read_number(&text) != 3 || *text++ != '.')
        return -1;
    int minor = read_number(&text);
    if (*text++ != '.' || read_number(&text) < 0 || *text == 'a' || *text == 'b')
        return -1;
    return minor;
}

/* Finds the range of the evaluator's machine code, from the size of its symbol. */
static void find_evaluator(const struct tm_object *object)
{
    size_t size = 0;
    tm_python.evaluator_start = (uintptr_t)tm_object_symbol_sized(object, "_PyEval_EvalFrameDefault", &size);
    tm_python.evaluator_end = tm_python.evaluator_start + size;
}

static int (*find_is_finalizing(const struct tm_object *object))(void)
{
    void *function = tm_object_symbol(object, "Py_IsFinalizing"); /* since 3.13 */
    return (int (*)(void))(function ? function : tm_object_symbol(object, "_Py_IsFinalizing"));
}

static int find_functions(const struct tm_object *object)
{
    tm_python.this_thread_state = (void *(*)(void))tm_object_symbol(object, "PyGILState_GetThisThreadState");
    tm_python.current_thread_state = (void *(*)(void))tm_object_symbol(object, "PyThreadState_GetUnchecked");
    if (!tm_python.current_thread_state)
        tm_python.current_thread_state = (void *(*)(void))tm_object_symbol(object, "_PyThreadState_UncheckedGet");
    tm_python.thread_interpreter = (void *(*)(void *))tm_object_symbol(object, "PyThreadState_GetInterpreter");
    tm_python.is_finalizing = find_is_finalizing(object);
    tm_python.first_interpreter = (void *(*)(void))tm_object_symbol(object, "PyInterpreterState_Head");
    tm_python.code_type = tm_object_symbol(object, "PyCode_Type");
    tm_python.unicode_type = tm_object_symbol(object, "PyUnicode_Type");
    tm_python.bytes_type = tm_object_symbol(object, "PyBytes_Type");
    tm_python.long_type = tm_object_symbol(object, "PyLong_Type");
    find_evaluator(object);
    return tm_python.this_thread_state && tm_python.current_thread_state && tm_python.thread_interpreter &&
           tm_python.is_finalizing && tm_python.code_type && tm_python.unicode_type &&
           tm_python.bytes_type && tm_python.long_type;
}

static const struct tm_python_version *find_known(int minor)
{
    for (size_t i = 0; i < sizeof tm_python_versions / sizeof *tm_python_versions; i++)
        if (tm_python_versions[i].layout->minor == minor)
            return &tm_python_versions[i];
    return NULL;
}

/* Refuses an unknown version by Py_Version (read-only data, since 3.11) before it has started, because it is
 * unknown where such a version stores whether it has. Non-zero: refused. */
static int refuse_unknown(const struct tm_object *object)
{
    const unsigned long *version = tm_object_symbol(object, "Py_Version");
    if (!version || (*version >> 24 == 3 && find_known((int)(*version >> 16 & 0xff))))
        return 0;
    tm_format(tm_python.version, sizeof tm_python.version, "%u.%u.%u", (uint32_t)(*version >> 24),
              (uint32_t)(*version >> 16 & 0xff), (uint32_t)(*version >> 8 & 0xff));
    tm_python_refuse(TM_LIMIT_UNKNOWN_PYTHON, "no layout table for it");
    return 1;
}

/* Whether an interpreter's own code has run. The loader lists an object before it has
 * relocated it, and allocates memory in between: then none of its functions may be called. */
static int has_begun(const struct tm_object *object, const void *runtime)
{
    const unsigned long *version = tm_object_symbol(object, "Py_Version"); /* since 3.11 */
    if (!version)
        return tm_int_at(runtime, TM_BEGUN_WITHOUT_VERSION) != 0;
    return tm_int_at(runtime, find_known((int)(*version >> 16 & 0xff))->layout->runtime_preinitialized) != 0;
}

/* A host may have finalized it before our first check. Until it is initialized again, its
 * locks do not exist (3.12's functions for allocators take one). */
static int runs(const struct tm_object *object, const void *runtime)
{
    if (!has_begun(object, runtime))
        return 0;
    int (*is_finalizing)(void) = find_is_finalizing(object);
    return !is_finalizing || !is_finalizing();
}

struct search {
    int late; /* objects may still be loading */
    void (*found)(const struct tm_object *object, int running);
};

/* Examines one object of the list. Non-zero: it is an interpreter, supported or not; end the search. */
static int examine(const struct tm_object *object, void *data)
{
    const struct search *search = data;
    const uint64_t *runtime = tm_object_symbol(object, "_PyRuntime");
    const char *(*get_version)(void) = (const char *(*)(void))tm_object_symbol(object, "Py_GetVersion");
    if (!runtime || !get_version || !tm_object_symbol(object, "PyGILState_GetThisThreadState"))
        return 0;

    if (search->late && refuse_unknown(object))
        return 1;
    if (search->late && !runs(object, runtime)) {
        atomic_store(&tm_python.awaited, 1);
        return 0;
    }
    const char *text = get_version();
    int minor = read_version(text);
    if (strstr(text, "free-threading build")) {
        tm_python_refuse(TM_LIMIT_FREE_THREADED, "a free-threaded build");
        return 1;
    }
    const struct tm_python_version *known = find_known(minor);
    if (!known) {
        tm_python_refuse(TM_LIMIT_UNKNOWN_PYTHON, "no layout table for it");
        return 1;
    }
    tm_python.layout = *known->layout;
    const char *problem = read_published(runtime, known->published);
    if (!problem && !find_functions(object))
        problem = "it does not export what a stack walk needs";
    if (problem) {
        tm_python_refuse(TM_LIMIT_LAYOUT_MISMATCH, problem);
        return 1;
    }
    atomic_store_explicit(&tm_python.ready, 1, memory_order_release);
    search->found(object, search->late);
    return 1;
}

static int is_our_interpreter(const struct tm_object *object, void *unused)
{
    (void)unused;
    return (uintptr_t)tm_python.code_type >= object->start && (uintptr_t)tm_python.code_type < object->end;
}

/* A host may unload the interpreter, finalized or not; after that none of its functions may be called. */
int tm_python_is_loaded(void)
{
    static _Atomic uint64_t seen; /* changes of the loader's list as of the last check */
    if (!tm_loader_is_safe())
        return 1;
    uint64_t changes = tm_object_changes();
    if (atomic_load(&seen) == changes)
        return 1;
    if (!tm_each_object(is_our_interpreter, NULL)) {
        atomic_store(&tm_python.ready, 0);
        tm_python_refuse(0, "its library was unloaded");
        return 0;
    }
    atomic_store(&seen, changes);
    return 1;
}

static _Atomic int late; /* the constructor's call comes first, when all objects are relocated */

int tm_python_is_known(void)
{
    atomic_store(&late, 1);
    if (atomic_load(&refused)) {
        log_refusal();
        return 0;
    }
    return atomic_load(&tm_python.ready);
}

void tm_python_find(void (*found)(const struct tm_object *object, int running))
{
    if (atomic_load(&refused) || !tm_python_try_exclusive())
        return;
    struct search search = {atomic_load(&late), found};
    atomic_store(&tm_python.awaited, 0);
    if (!atomic_load(&tm_python.ready))
        tm_each_object(examine, &search);
    else if (!tm_each_object(is_our_interpreter, NULL))
        tm_python_refuse(0, "its library was unloaded");
    atomic_store(&late, 1);
    tm_python_end_exclusive();
}

int tm_python_is_evaluator(const void *return_address)
{
    uintptr_t address = (uintptr_t)return_address;
    return address > tm_python.evaluator_start && address <= tm_python.evaluator_end;
}
