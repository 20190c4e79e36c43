/* lock.c - the core lock: a futex with bounded waiting.
 *
 * An ordinary mutex would hang the program when its holder never returns: a signal
 * handler left by siglongjmp(), a thread killed by the kernel alone. Here a waiter gives
 * up after 100 ms and its sample counts as lost. After twenty such waits in a row, in which
 * no thread got the lock, the agent turns itself off.
 */
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "core/lock.h"
#include "core/state.h"
#include "core/system.h"

#define WAIT_NS 100000000
#define WAITS_BEFORE_OFF 20u

void (*tm_lock_stuck)(const char *why);

static long futex(uint32_t *word, int operation, uint32_t value, const struct timespec *timeout)
{
    return syscall(SYS_futex, word, operation, value, timeout, NULL, 0);
}

int tm_lock_is_mine(void)
{
    return __atomic_load_n(&tm_core.lock_owner, __ATOMIC_RELAXED) == (const void *)&tm_own_thread;
}

static int taken(void)
{
    __atomic_store_n(&tm_core.lock_owner, (const void *)&tm_own_thread, __ATOMIC_RELAXED);
    if (__atomic_load_n(&tm_core.lock_timeouts, __ATOMIC_RELAXED))
        __atomic_store_n(&tm_core.lock_timeouts, 0, __ATOMIC_RELAXED);
    return 1;
}

int tm_try_lock(void)
{
    uint32_t expected = 0;
    return __atomic_compare_exchange_n(&tm_core.lock, &expected, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED) && taken();
}

int tm_lock_always(void)
{
    uint32_t *word = &tm_core.lock;
    if (tm_lock_is_mine())
        return 0; /* a signal handler inside the locked part */
    for (int spin = 0; spin < 100; spin++) {
        if (tm_try_lock())
            return 1;
        __builtin_ia32_pause();
    }
    uint64_t give_up = tm_now_ns() + WAIT_NS;
    while (__atomic_exchange_n(word, 2, __ATOMIC_ACQUIRE) != 0) {
        uint64_t now = tm_now_ns();
        if (now >= give_up) {
            if (__atomic_add_fetch(&tm_core.lock_timeouts, 1, __ATOMIC_RELAXED) >= WAITS_BEFORE_OFF && tm_lock_stuck)
                tm_lock_stuck("its lock was never released");
            return 0;
        }
        struct timespec timeout = {.tv_nsec = (long)(give_up - now)};
        futex(word, FUTEX_WAIT_PRIVATE, 2, &timeout);
    }
    return taken();
}

/* A thread that enters after the recording ended must find the tables locked, because they are zeroed then. */
int tm_lock(void)
{
    if (!tm_lock_always())
        return 0;
    if (tm_armed())
        return 1;
    tm_unlock();
    return 0;
}

void tm_unlock(void)
{
    __atomic_store_n(&tm_core.lock_owner, NULL, __ATOMIC_RELAXED);
    if (__atomic_exchange_n(&tm_core.lock, 0, __ATOMIC_RELEASE) == 2)
        futex(&tm_core.lock, FUTEX_WAKE_PRIVATE, 1, NULL);
}
