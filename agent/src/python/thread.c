/* thread.c - finds this thread's PyThreadState, and checks whether it may be read now.
 *
 * A thread reads only its own state and its own frames: no other thread changes them while
 * it is in an allocator, with or without the GIL. The one exception is finalization: the main
 * thread then frees the states of daemon threads that still run native code, and
 * PyGILState_GetThisThreadState still returns them (3.9-3.13). So a reader increments a count,
 * checks whether the runtime finalizes, reads, and decrements the count. The hook of the
 * interpreter's munmap waits for the count to reach zero while the runtime finalizes (hooks.c),
 * so a freed state is still in mapped memory.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "core/core.h"
#include "python/python.h"
#include "python/state.h"

/* A child must not inherit readers that the fork left behind. */
static union {
    struct {
        _Atomic uint32_t count;
        _Atomic uint32_t exclusive; /* a thread searches for the interpreter or sets hooks */
    };
    char page[TM_PAGE];
} readers TM_IMAGE;

#define LONGEST_WAIT_NS 20000000

static int is_ours(const char *thread)
{
    return thread && tm_word_at(thread, tm_python.layout.thread_id) == (uint64_t)pthread_self();
}

/* The state to read, not yet checked. In a Python allocator this thread holds the GIL, so the
 * current state is the right one; in a subinterpreter (<= 3.11), PyGILState does not know it. */
static const char *find_thread(void)
{
    const char *thread = NULL;
    if (tm_own_thread.domain == TM_DOMAIN_PYTHON + 1)
        thread = tm_python.current_thread_state();
    return thread ? thread : tm_python.this_thread_state();
}

const char *tm_python_hold_thread(void)
{
    if (!atomic_load_explicit(&tm_python.ready, memory_order_acquire) ||
        atomic_load_explicit(&tm_python.trust, memory_order_relaxed) == TM_TRUST_REFUSED)
        return NULL;
    if (!tm_own_thread.reads) {
        tm_own_thread.reads = 1;
        atomic_fetch_add(&readers.count, 1);
    }
    if (tm_python.is_finalizing()) {
        tm_python_release(); /* nothing will be read, so finalization need not wait for this thread */
        return NULL;
    }
    const char *thread = find_thread();
    return is_ours(thread) ? thread : NULL;
}

void tm_python_release(void)
{
    if (!tm_own_thread.reads)
        return;
    tm_own_thread.reads = 0;
    atomic_fetch_sub_explicit(&readers.count, 1, memory_order_release);
}

int tm_python_try_exclusive(void)
{
    return !atomic_exchange_explicit(&readers.exclusive, 1, memory_order_acquire);
}

void tm_python_end_exclusive(void)
{
    atomic_store_explicit(&readers.exclusive, 0, memory_order_release);
}

int tm_python_finalises(void)
{
    return atomic_load_explicit(&tm_python.ready, memory_order_acquire) && tm_python_is_loaded() &&
           tm_python.is_finalizing();
}

int tm_python_has_interpreter(void)
{
    return !tm_python.first_interpreter || tm_python.first_interpreter() != NULL;
}

int tm_python_holds_gil(void)
{
    const void *thread = tm_python.this_thread_state();
    return thread && thread == tm_python.current_thread_state();
}

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void tm_python_wait_for_readers(void)
{
    static _Atomic int gave_up; /* a reader that does not finish was killed while reading: stop waiting */
    if (!atomic_load(&readers.count) || atomic_load(&gave_up) || !tm_python.is_finalizing())
        return;
    uint64_t end = now_ns() + LONGEST_WAIT_NS;
    while (atomic_load(&readers.count)) {
        if (now_ns() > end) {
            atomic_store(&gave_up, 1);
            return;
        }
        sched_yield();
    }
}

int tm_python_read(const void *address, void *copy, size_t length)
{
    int saved_errno = errno;
    struct iovec local = {copy, length}, remote = {(void *)(uintptr_t)address, length};
    ssize_t done = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
    if (done < 0 && (errno == EPERM || errno == ENOSYS)) {
        /* A sandbox forbids the call: check at least whether the pages are mapped. */
        unsigned char resident[2];
        uintptr_t first = (uintptr_t)address & ~(uintptr_t)(TM_PAGE - 1);
        size_t span = (uintptr_t)address + length - first;
        if (span <= 2 * TM_PAGE && mincore((void *)first, span, resident) == 0) {
            memcpy(copy, address, length);
            done = (ssize_t)length;
        }
    }
    errno = saved_errno;
    return done == (ssize_t)length;
}
