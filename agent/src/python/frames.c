/* frames.c - walks the calling thread's interpreter frames, without a lock and
 * without a call that allocates.
 *
 *   3.9, 3.10    thread.frame ----------------> PyFrameObject --f_back--> ...
 *   3.11, 3.12   thread.cframe.current_frame -> _PyInterpreterFrame --previous--> ...
 *   3.13 on      thread.current_frame --------> _PyInterpreterFrame --previous--> ...
 *
 * Between the evaluator's C activations there are shim frames (3.12 on, marked by `owner`),
 * which belong to no function. A frame that has not reached its first traceable
 * instruction is still being set up: CPython omits it from tracebacks, and so
 * do we. Generators, coroutines and greenlets need no special treatment: while one runs, it
 * is linked in like any call.
 */
#include <pthread.h>

#include "python/python.h"
#include "python/state.h"

/* Deeper stacks lose their root: a sample must not take long, and the walk must end, even if it reads garbage. */
#define DEEPEST_WALK 2048u
#define FRAME_OWNED_BY_GENERATOR 1
#define LARGEST_STRUCTURE 256u

/* The frame's instruction as a byte offset into its code; below 0: not started. */
static int64_t instruction_offset(const char *frame, const char *code)
{
    const struct tm_python_layout *layout = &tm_python.layout;
    if (layout->line_table == TM_LINES_LNOTAB)
        return tm_int_at(frame, layout->frame_instruction);
    if (layout->line_table == TM_LINES_RANGES)
        return 2 * (int64_t)tm_int_at(frame, layout->frame_instruction);
    return (int64_t)tm_word_at(frame, layout->frame_instruction) - (int64_t)(uintptr_t)(code + layout->code_bytes);
}

/* Whether C code called the evaluator for this frame. Up to 3.10 this is true of every frame; since
 * then, a call from one Python function to another stays in the same evaluator. From 3.12 on, the
 * frame below an entry is a shim. */
static int is_entry(const char *frame)
{
    const struct tm_python_layout *layout = &tm_python.layout;
    if (layout->frame_owner == TM_NO_OFFSET)
        return 1;
    if (layout->frame_is_entry != TM_NO_OFFSET)
        return frame[layout->frame_is_entry] != 0;
    const char *previous = tm_pointer_at(frame, layout->frame_previous);
    return !previous || (unsigned char)previous[layout->frame_owner] >= layout->frame_first_shim_owner;
}

/* Reads the code and offset of a frame that represents a function; 0: leave the frame out. */
static int read_frame(const char *frame, struct tm_raw_frame *raw)
{
    const struct tm_python_layout *layout = &tm_python.layout;
    const char *code = tm_frame_code(frame);
    unsigned char owner = 0;
    if (layout->frame_owner != TM_NO_OFFSET) {
        owner = (unsigned char)frame[layout->frame_owner];
        if (owner >= layout->frame_first_shim_owner)
            return 0;
    }
    if (!code || tm_type_of(code) != tm_python.code_type)
        return 0;
    int64_t offset = instruction_offset(frame, code);
    if (layout->code_first_traceable != TM_NO_OFFSET && owner != FRAME_OWNED_BY_GENERATOR &&
        offset < 2 * (int64_t)tm_int_at(code, layout->code_first_traceable))
        return 0;
    raw->code = code;
    raw->position = offset < 0 || offset > INT32_MAX ? UINT32_MAX : (uint32_t)offset;
    raw->left_out = 0;
    raw->entry = (unsigned)is_entry(frame) & 1u;
    return 1;
}

/* Bytes of a frame that a walk reads. */
static size_t frame_bytes(void)
{
    const struct tm_python_layout *layout = &tm_python.layout;
    uint16_t last = layout->frame_code;
    if (layout->frame_previous > last)
        last = layout->frame_previous;
    if (layout->frame_instruction > last)
        last = layout->frame_instruction;
    if (layout->frame_owner != TM_NO_OFFSET && layout->frame_owner > last)
        last = layout->frame_owner;
    return last + sizeof(void *) < LARGEST_STRUCTURE ? last + sizeof(void *) : LARGEST_STRUCTURE;
}

/* Reads a pointer, and the structure that it points to, by checked copies. */
static int read_checked(const void *address, uint16_t offset, const char **target, char copy[LARGEST_STRUCTURE],
                        size_t length)
{
    return tm_python_read((const char *)address + offset, target, sizeof *target) && *target &&
           ((uintptr_t)*target & 7) == 0 && tm_python_read(*target, copy, length);
}

static int has_type(const void *owner, uint16_t offset, const void *type)
{
    const char *object;
    char head[LARGEST_STRUCTURE];
    return read_checked(owner, offset, &object, head, 16) && tm_type_of(head) == type;
}

/* One frame of the first walk. 1: a function's, and valid; 0: a shim; -1: invalid. */
static int check_frame(const char *frame)
{
    const struct tm_python_layout *layout = &tm_python.layout;
    char copy[LARGEST_STRUCTURE];
    if (!tm_python_read(frame, copy, frame_bytes()))
        return -1;
    if (layout->frame_owner != TM_NO_OFFSET && (unsigned char)copy[layout->frame_owner] >= layout->frame_first_shim_owner)
        return 0;
    const char *code = tm_frame_code(copy);
    uint16_t end = (uint16_t)(layout->code_bytes + 8);
    uint16_t name = layout->code_qualified_name != TM_NO_OFFSET ? layout->code_qualified_name : layout->code_name;
    char body[LARGEST_STRUCTURE];
    if (!code || end > sizeof body || !tm_python_read(code, body, end) || tm_type_of(body) != tm_python.code_type)
        return -1;
    if (!has_type(code, layout->code_name, tm_python.unicode_type) || !has_type(code, name, tm_python.unicode_type) ||
        !has_type(code, layout->code_file, tm_python.unicode_type) ||
        !has_type(code, layout->code_lines, tm_python.bytes_type) || tm_int_at(body, layout->code_first_line) < 0)
        return -1;
    int64_t size;
    if (layout->line_table == TM_LINES_LOCATIONS) {
        size = 2 * (int64_t)tm_word_at(body, layout->variable_size);
    } else {
        if (!has_type(code, layout->code_bytes, tm_python.bytes_type))
            return -1;
        size = (int64_t)tm_word_at(tm_pointer_at(body, layout->code_bytes), layout->variable_size);
    }
    int64_t offset = instruction_offset(copy, code);
    return offset >= -2 && offset < size ? 1 : -1;
}

/* Walks the whole stack once by checked reads. With wrong offsets this would read plausible garbage, so
 * every type, every pointer and the instruction's position in its code must be valid. */
static int prove_layout(const char *thread)
{
    const struct tm_python_layout *layout = &tm_python.layout;
    if (tm_python.thread_interpreter((void *)(uintptr_t)thread) != tm_pointer_at(thread, layout->thread_interpreter)) {
        tm_python_refuse(TM_LIMIT_LAYOUT_MISMATCH, "its thread state is not laid out as its version's");
        return 0;
    }
    const char *frame;
    char copy[LARGEST_STRUCTURE];
    if (!tm_python_read(thread + layout->thread_frame, &frame, sizeof frame))
        frame = (const char *)1;
    else if (frame && layout->thread_cframe_frame != TM_NO_OFFSET &&
             !tm_python_read(frame + layout->thread_cframe_frame, &frame, sizeof frame))
        frame = (const char *)1;
    unsigned functions = 0;
    for (unsigned hops = 0; frame && hops < DEEPEST_WALK; hops++) {
        int found = ((uintptr_t)frame & 7) ? -1 : check_frame(frame);
        if (found < 0 || !tm_python_read(frame, copy, frame_bytes())) {
            tm_python_refuse(TM_LIMIT_LAYOUT_MISMATCH, "its frames are not laid out as its version's");
            return 0;
        }
        functions += (unsigned)found;
        frame = tm_pointer_at(copy, layout->frame_previous);
    }
    if (functions)
        atomic_store(&tm_python.trust, TM_TRUST_PROVEN);
    return functions > 0;
}

static void reverse(struct tm_raw_frame *raw, unsigned count)
{
    for (unsigned i = 0; i < count / 2; i++) {
        struct tm_raw_frame kept = raw[i];
        raw[i] = raw[count - 1 - i];
        raw[count - 1 - i] = kept;
    }
}

/* Leaf frames fill raw[0..99]; those beyond use the last twenty places as a ring, which is
 * rotated into order at the end. */
static unsigned walk(const char *frame, struct tm_raw_frame raw[TM_RAW_FRAMES])
{
    uint16_t previous = tm_python.layout.frame_previous;
    unsigned found = 0, hops = 0;
    for (; frame && hops < DEEPEST_WALK; hops++, frame = tm_pointer_at(frame, previous)) {
        unsigned place = found < TM_LEAF_FRAMES ? found : TM_LEAF_FRAMES + (found - TM_LEAF_FRAMES) % TM_ROOT_FRAMES;
        found += (unsigned)read_frame(frame, &raw[place]);
    }
    if (found <= TM_RAW_FRAMES)
        return found;
    if (frame) { /* too deep to reach the root: the ring does not hold the root's frames */
        raw[TM_LEAF_FRAMES - 1].left_out = found - TM_LEAF_FRAMES;
        return TM_LEAF_FRAMES;
    }
    raw[TM_LEAF_FRAMES - 1].left_out = found - TM_RAW_FRAMES;
    unsigned oldest = (found - TM_LEAF_FRAMES) % TM_ROOT_FRAMES;
    reverse(raw + TM_LEAF_FRAMES, oldest);
    reverse(raw + TM_LEAF_FRAMES + oldest, TM_ROOT_FRAMES - oldest);
    reverse(raw + TM_LEAF_FRAMES, TM_ROOT_FRAMES);
    return TM_RAW_FRAMES;
}

unsigned tm_python_capture(struct tm_raw_frame raw[TM_RAW_FRAMES])
{
    const char *thread = tm_python_hold_thread();
    if (!thread)
        return 0;
    unsigned count = 0;
    if (atomic_load_explicit(&tm_python.trust, memory_order_relaxed) == TM_TRUST_PROVEN || prove_layout(thread)) {
        const char *frame = tm_innermost_frame(thread);
        /* If the state was freed in the meantime, discard everything that was read from it. */
        if (!tm_python.is_finalizing())
            count = walk(frame, raw);
        if (tm_python.is_finalizing())
            count = 0;
    }
    return count;
}

/* ---- the innermost functions ------------------------------------------------------------ */

#define FUNCTIONS 4u
#define MOST_HOPS 12u /* shims are between some frames */

static uint64_t add_function(uint64_t hash, const void *code)
{
    return (hash ^ (uint64_t)(uintptr_t)code >> 4) * 0xff51afd7ed558ccdull | 1;
}

uint64_t tm_python_functions_of(const struct tm_raw_frame *raw, unsigned count)
{
    uint64_t hash = 0;
    for (unsigned i = 0; i < count && i < FUNCTIONS; i++)
        hash = add_function(hash, raw[i].code);
    return hash;
}

/* Reads only frames, not their code: those of a thread are next to each other. */
static uint64_t hash_functions(const char *frame)
{
    const struct tm_python_layout *layout = &tm_python.layout;
    uint64_t hash = 0;
    for (unsigned hops = 0, found = 0; frame && found < FUNCTIONS && hops < MOST_HOPS; hops++) {
        if (layout->frame_owner == TM_NO_OFFSET ||
            (unsigned char)frame[layout->frame_owner] < layout->frame_first_shim_owner) {
            hash = add_function(hash, tm_frame_code(frame));
            found++;
        }
        frame = tm_pointer_at(frame, layout->frame_previous);
    }
    return hash;
}

uint64_t tm_python_functions(void)
{
    uint64_t hash = 0;
    if (atomic_load_explicit(&tm_python.trust, memory_order_relaxed) != TM_TRUST_PROVEN || tm_own_thread.reads)
        return 0;
    const char *thread = tm_python_hold_thread();
    if (thread && !tm_python.is_finalizing())
        hash = hash_functions(tm_innermost_frame(thread));
    tm_python_release();
    return hash;
}
