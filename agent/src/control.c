/* control.c - keeps the slow path under its share of the process's own CPU time. (locked)
 *
 * A budget account: every nanosecond of the process's CPU time puts in 0.003 ns, the slow
 * path draws what it took. In debt, the period doubles (more when the overdraft is steep);
 * with the account well filled and little spent, it halves again towards the configured
 * one, but never below what thinning set while the live table is still that full.
 */
#include "state.h"

#define SHARE 0.003
#define CREDIT_NS 10000000ll       /* an account holds at most 10 ms */
#define FIRST_CREDIT_NS 500000ll   /* first sights of code are dear, and come at the start */
#define SAMPLES_A_CHECK 32
#define TICKS_A_CHECK 300000000ull /* about 100 ms */
#define PREEMPTED_NS 100000u       /* longer than any slow path: the thread was off its core */
/* At a GiB allocated a second, 128 samples: cheap at any price, and a coarser profile says nothing.
 * (Thinning goes beyond it where the table is full.) */
#define LARGEST_PERIOD (8ull << 20)

void tm_control_begin(void)
{
    tm_core.ticks_start = tm_ticks();
    tm_core.ticks_start_ns = tm_now_ns();
    tm_core.credit_ns = FIRST_CREDIT_NS;
    tm_core.cpu_ns = tm_process_cpu_ns();
}

/* The counter's rate shows itself over the process's own life; the first guess is 3 GHz. */
static double ns_a_tick(void)
{
    uint64_t ticks = tm_ticks() - tm_core.ticks_start, ns = tm_now_ns() - tm_core.ticks_start_ns;
    return ns > 1000000 && ticks ? (double)ns / (double)ticks : 0.33;
}

void tm_control_report(void)
{
    uint64_t ns = (uint64_t)((double)tm_core.slow_ticks * ns_a_tick());
    tm_core.slow_ticks = 0;
    tm_core.header->slow_path_ns += ns;
    tm_core.header->process_cpu_ns = tm_process_cpu_ns();
}

/* `whole`: a full round of samples, enough to tell a dear slow path from a dear moment. */
static void check(int whole)
{
    struct tm_segment_header *header = tm_core.header;
    tm_control_report();
    uint64_t cpu = header->process_cpu_ns - tm_core.cpu_ns, slow = header->slow_path_ns - tm_core.slow_ns_checked;
    tm_core.cpu_ns = header->process_cpu_ns;
    tm_core.slow_ns_checked = header->slow_path_ns;
    tm_core.credit_ns += (int64_t)((double)cpu * SHARE) - (int64_t)slow;
    if (tm_core.credit_ns > CREDIT_NS)
        tm_core.credit_ns = CREDIT_NS;
    double spent = cpu ? (double)slow / (double)cpu : 0.0;
    uint64_t period = tm_core.period;
    if (whole && tm_core.credit_ns < 0 && spent > SHARE && period < LARGEST_PERIOD) {
        int doublings = spent > 4 * SHARE && period < LARGEST_PERIOD / 2 ? 2 : 1;
        tm_set_period(period << doublings);
        if (tm_core.credit_ns < -CREDIT_NS)
            tm_core.credit_ns = -CREDIT_NS; /* old debt must not silence a long life */
    } else if (tm_core.credit_ns > CREDIT_NS / 2 && spent < SHARE / 3 && period > tm_core.configured_period) {
        uint64_t lower = period / 2;
        int table_allows = lower >= tm_core.table_period || tm_core.live_count < TM_LIVE_COUNT / 4;
        if (table_allows)
            tm_set_period(lower < tm_core.configured_period ? tm_core.configured_period : lower);
    }
}

void tm_control_spent(uint64_t ticks)
{
    uint64_t most = (uint64_t)(PREEMPTED_NS / 0.33);
    tm_core.slow_ticks += ticks > most ? most : ticks;
}

void tm_control(uint64_t ticks_spent)
{
    tm_control_spent(ticks_spent);
    /* After a costly start the period is coarse and samples are rare: to lower it, they do not wait
     * for 31 others, or it would stay coarse until the program has allocated 32 periods. */
    uint64_t now = tm_ticks();
    int whole = ++tm_core.slow_samples == SAMPLES_A_CHECK;
    if (!whole && now < tm_core.check_at_ticks)
        return;
    tm_core.slow_samples = 0;
    tm_core.check_at_ticks = now + TICKS_A_CHECK;
    check(whole);
}
