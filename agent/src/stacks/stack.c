/* stack.c - the calling thread's stack: captured without a lock, interned under it.
 *
 *   frames of the interpreter (python/python.h) ---+
 *   return addresses, with --native --------------+--> captured --lock--> id of the stack
 *   or the native caller alone -------------------+
 */
#include "core/lock.h"
#include "core/measure.h"
#include "core/state.h"
#include "core/system.h"
#include "python/python.h"
#include "segment/intern.h"
#include "stacks/native.h"
#include "stacks/stack.h"
#include "stacks/trail.h"

/* ---- interning (locked) --------------------------------------------------------------- */

uint32_t tm_intern_left_out(uint32_t stack, unsigned left_out)
{
    char text[48];
    tm_format(text, sizeof text, "%u frames left out", left_out);
    return tm_intern_stack(stack, tm_intern_mark(text));
}

static uint32_t push_python(uint32_t stack, const struct tm_raw_frame *raw)
{
    struct tm_known_frame known;
    if (raw->left_out)
        stack = tm_intern_left_out(stack, raw->left_out);
    return tm_intern_stack(stack, tm_python_intern(raw, &known));
}

static uint32_t plain_stack(const struct tm_raw_frame *raw, unsigned count, const void *return_address)
{
    uint32_t stack = count ? tm_trail_intern(raw, count) : 0;
    return return_address ? tm_intern_stack(stack, tm_native_intern(return_address)) : stack;
}

/* How many evaluator calls the Python frames represent. */
static unsigned count_entries(const struct tm_raw_frame *raw, unsigned count)
{
    unsigned entries = 0;
    for (unsigned i = 0; i < count; i++)
        entries += raw[i].entry;
    return entries;
}

/* Native and Python frames in one stack: each native frame of the evaluator is replaced by the
 * Python frames it was running. `pcs` and `raw` are leaf first; the stack grows from the root. */
static uint32_t merged_stack(const struct tm_raw_frame *raw, unsigned raw_count, void *const *pcs, unsigned pc_count)
{
    unsigned evaluators = 0, entries = count_entries(raw, raw_count), pushed = 0;
    for (unsigned i = 0; i < pc_count; i++)
        evaluators += tm_python_is_evaluator(pcs[i]) != 0;
    if (evaluators == 0) /* native code alone, or an evaluator that we cannot identify */
        pc_count = raw_count ? 0 : pc_count;
    uint32_t stack = 0;
    unsigned depth = raw_count + pc_count - evaluators;
    unsigned left_out = depth > TM_RAW_FRAMES ? depth - TM_RAW_FRAMES : 0;
    while (raw_count && entries > evaluators) { /* the native stack was cut nearer the leaf */
        stack = push_python(stack, &raw[--raw_count]);
        pushed++;
        while (raw_count && !raw[raw_count - 1].entry) {
            stack = push_python(stack, &raw[--raw_count]);
            pushed++;
        }
        entries--;
    }
    while (pc_count) {
        const void *pc = pcs[--pc_count];
        if (!tm_python_is_evaluator(pc)) {
            if (pushed++ < TM_ROOT_FRAMES || pushed > TM_ROOT_FRAMES + left_out)
                stack = tm_intern_stack(stack, tm_native_intern(pc));
            else if (pushed == TM_ROOT_FRAMES + 1)
                stack = tm_intern_left_out(stack, left_out);
            continue;
        }
        evaluators--;
        for (int first = 1; raw_count && (first || evaluators == 0 || !raw[raw_count - 1].entry); first = 0) {
            if (entries == 0 && evaluators != 0)
                break; /* the version does not mark entries: all Python frames replace the leaf's */
            stack = push_python(stack, &raw[--raw_count]);
            pushed++;
        }
    }
    while (raw_count)
        stack = push_python(stack, &raw[--raw_count]);
    return stack;
}

uint32_t tm_intern_captured(const struct tm_captured *captured)
{
    return captured->pc_count
               ? merged_stack(captured->raw, captured->raw_count, captured->pcs, captured->pc_count)
               : plain_stack(captured->raw, captured->raw_count, captured->return_address);
}

/* The table lacks an object: release the lock to read the loader's list. */
static int knows_all(const struct tm_captured *captured)
{
    if (captured->return_address && !tm_native_knows(captured->return_address))
        return 0;
    for (unsigned i = 0; i < captured->pc_count; i++)
        if (!tm_native_knows(captured->pcs[i]))
            return 0;
    return 1;
}

/* ---- capturing -------------------------------------------------------------------------- */

/* A sample that began in a recording that has ended must not be counted in another. */
static int lock_this_recording(void)
{
    if (!tm_lock())
        return 0;
    if (tm_own_thread.incarnation == tm_core.incarnation)
        return 1;
    tm_unlock();
    return 0;
}

typedef void write_function(const struct tm_captured *captured, void *data);

static int lock_and_write(const struct tm_captured *captured, write_function *write, void *data)
{
    tm_part(TM_PART_LOCK);
    if (!lock_this_recording())
        return 0;
    if (!knows_all(captured)) {
        tm_unlock();
        tm_native_refresh();
        if (!lock_this_recording())
            return 0;
    }
    write(captured, data);
    tm_part(TM_PART_LOCK);
    tm_unlock();
    return 1;
}

/* Not inlined, because its arrays are large and threads' stacks may be small. */
static __attribute__((noinline)) int write_with_native(struct tm_captured *captured, write_function *write, void *data)
{
    void *pcs[TM_NATIVE_FRAMES];
    captured->pcs = pcs;
    captured->pc_count = tm_native_backtrace(pcs, captured->return_address);
    return lock_and_write(captured, write, data);
}

__attribute__((noinline)) int tm_with_stack(const void *return_address, write_function *write, void *data)
{
    struct tm_raw_frame raw[TM_RAW_FRAMES];
    struct tm_captured captured = {.return_address = return_address, .raw = raw};
    captured.raw_count = tm_python_capture(raw);
    captured.context = tm_python_context();
    int native = (__atomic_load_n(&tm_core.options, __ATOMIC_RELAXED) & TM_OPTION_NATIVE) != 0;
    int written = native ? write_with_native(&captured, write, data) : lock_and_write(&captured, write, data);
    tm_part(TM_PART_STACK);
    tm_python_release();
    return written;
}
