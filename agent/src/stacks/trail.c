/* trail.c - interns a Python stack by comparing it with the previous one of the same thread.
 *
 *   previous   root -- a -- b -- c -- d
 *   now        root -- a -- b -- e             a and b are unchanged: only e is looked up
 *
 * From one sample to the next, a thread changes only the leaf end of its stack. The common part is compared frame by
 * frame with the code objects, in memory that is read in order; it keeps the ids that were found before. A lookup of
 * each frame would take several reads at random addresses.
 */
#include "core/state.h"
#include "python/python.h"
#include "segment/intern.h"
#include "stacks/stack.h"
#include "stacks/trail.h"

#define TRAIL_COUNT 64u

/* Root first. Threads whose numbers have the same remainder share an entry. */
static struct trail {
    uint32_t thread; /* its number plus 1; 0: empty */
    uint32_t used;
    uint64_t unused[7]; /* the frames begin with a cache line */
    struct tm_known_frame frames[TM_RAW_FRAMES];
} trails[TRAIL_COUNT] TM_WIPED;
_Static_assert(sizeof trails % TM_PAGE == 0 && sizeof(struct trail) % 64 == 0, "whole pages, whole cache lines");

static struct trail *own_trail(void)
{
    uint32_t thread = tm_own_thread_index();
    struct trail *trail = &trails[thread % TRAIL_COUNT];
    if (trail->thread != thread + 1) {
        trail->thread = thread + 1;
        trail->used = 0;
    }
    return trail;
}

uint32_t tm_trail_intern(const struct tm_raw_frame *raw, unsigned count)
{
    struct trail *trail = own_trail();
    unsigned depth = 0, common = count < trail->used ? count : trail->used;
    uint32_t stack = 0;
    while (depth < common && !raw[count - 1 - depth].left_out &&
           tm_python_is_same(&raw[count - 1 - depth], &trail->frames[depth]))
        stack = trail->frames[depth++].stack;
    trail->used = depth;
    for (; depth < count; depth++) {
        const struct tm_raw_frame *frame = &raw[count - 1 - depth];
        struct tm_known_frame *known = &trail->frames[depth];
        if (frame->left_out)
            stack = tm_intern_left_out(stack, frame->left_out);
        stack = tm_intern_stack(stack, tm_python_intern(frame, known));
        known->stack = stack;
        /* After a mark, or if it has no id, a frame is looked up each time. */
        if (trail->used == depth && !frame->left_out && known->frame != TM_NONE)
            trail->used = depth + 1;
    }
    return stack;
}
