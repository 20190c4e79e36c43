/* churn.c - samples sizes whose blocks rarely stay live less often, in favour of the others.
 *
 * Most blocks that a busy program allocates are freed in a moment: numbers, frames, temporary strings. Users
 * look for the ones that stay, and the slow path's share pays for a limited number of samples. Only the stack
 * identifies the site, and the stack is the expensive part; the size is known before it. So while the period in
 * force is above the configured one, a size gets its own period if only a share s of its samples was not freed
 * again:
 *
 *     period in force / sqrt(s)        in powers of two, at most 2^(TM_SHIFTS - 1) times
 *
 * (With a given number of samples, this distribution finds most of what stays: it follows the square root of
 * the bytes that stay per allocated byte.) Each record keeps the period with which it was sampled, and the
 * period of a size depends only on earlier blocks, so the sums stay unbiased. The controller spends what is
 * saved on a finer period for all sizes.
 */
#include "core/state.h"
#include "period/period.h"

#define SMALL_SIZES 32u /* of 16 bytes each, like pymalloc's; then one for each power of two */
#define SMALLEST_POWER 9
#define FEWEST_SAMPLES 32u
#define MEMORY_SAMPLES 512u
#define MIX_MEMORY 256.0
/* Cost of a discarded sample, as a part of the cost of one that is kept. */
#define DISCARDED 0.06

static struct tm_size *size_of(uint64_t bytes)
{
    if (bytes <= 16 * SMALL_SIZES)
        return &tm_core.sizes[bytes ? (bytes - 1) / 16 : 0];
    unsigned power = 63 - (unsigned)__builtin_clzll(bytes), size = SMALL_SIZES + power - SMALLEST_POWER;
    return &tm_core.sizes[size < TM_SIZES ? size : TM_SIZES - 1];
}

/* Only while the period in force is above the configured one, or at the start, whose allowance then lasts
 * longer. The period is up to four times coarser than the factor by which the period in force was raised: what
 * is saved is spent on a finer period for the others, which cannot be finer than configured, and each discarded
 * sample also costs time. */
static uint64_t shifted(uint64_t period, uint32_t shift)
{
    uint64_t configured = __atomic_load_n(&tm_core.configured_period, __ATOMIC_RELAXED);
    uint64_t coarsest = __atomic_load_n(&tm_core.coarsest, __ATOMIC_RELAXED);
    if (period <= configured && !tm_control_starts())
        return period;
    while (shift && ((period << 2) >> shift < configured || period << shift > coarsest))
        shift--;
    return period << shift;
}

uint32_t tm_churn_shift(uint64_t bytes)
{
    return __atomic_load_n(&size_of(bytes)->shift, __ATOMIC_RELAXED);
}

uint64_t tm_churn_period(uint64_t bytes, uint64_t in_force)
{
    return shifted(in_force, tm_churn_shift(bytes));
}

uint64_t tm_churn_coarsest(uint64_t in_force)
{
    return shifted(in_force, tm_core.most_shift);
}

/* A quarter stays, a sixteenth, ... */
static uint32_t shift_for(uint32_t taken, uint32_t ended)
{
    if (taken < FEWEST_SAMPLES)
        return 0;
    uint32_t shift = 0;
    while (shift < TM_SHIFTS - 1 && (taken - ended + 1) << (2 * (shift + 1)) <= taken + 1)
        shift++;
    return shift;
}

double tm_churn_samples(uint64_t period)
{
    double all = 0, samples = 0;
    for (uint32_t shift = 0; shift < TM_SHIFTS; shift++) {
        double own = 1.0 / (double)shifted(period, shift);
        all += tm_core.mix[shift];
        samples += tm_core.mix[shift] * (own + DISCARDED * (1.0 / (double)period - own));
    }
    return all > 0 ? samples / all : 1.0 / (double)period;
}

void tm_churn_taken(uint64_t bytes, double period)
{
    struct tm_size *size = size_of(bytes);
    for (uint32_t shift = 0; shift < TM_SHIFTS; shift++)
        tm_core.mix[shift] *= 1.0 - 1.0 / MIX_MEMORY;
    tm_core.mix[size->shift] += tm_is_large(bytes) ? 0 : period;
    if (++size->taken >= MEMORY_SAMPLES) {
        size->taken /= 2;
        size->ended /= 2;
    }
    uint32_t shift = shift_for(size->taken, size->ended);
    if (shift == size->shift)
        return;
    __atomic_store_n(&size->shift, shift, __ATOMIC_RELAXED);
    tm_core.most_shift = 0;
    for (unsigned i = 0; i < TM_SIZES; i++)
        if (tm_core.sizes[i].shift > tm_core.most_shift)
            tm_core.most_shift = tm_core.sizes[i].shift;
    tm_publish_period();
}

void tm_churn_ended(uint64_t bytes)
{
    struct tm_size *size = size_of(bytes);
    size->ended += size->ended < size->taken; /* old samples are forgotten: their ends do not count as recent ones */
}

void tm_publish_period(void)
{
    uint64_t small = tm_churn_coarsest(tm_core.period), large = tm_large_coarsest(tm_core.period);
    tm_core.header->period_bytes = large > small ? large : small;
}
