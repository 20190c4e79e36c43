/* churn.c - samples blocks that rarely stay live less often, in favour of the others.
 *
 * Most blocks that a busy program allocates are freed in a moment: numbers, frames, temporary strings. Users
 * look for the ones that stay, and the slow path's share pays for a limited number of samples. The stack is the
 * expensive part of a sample. The size is known before it, and the innermost functions can be, at little cost:
 * together they are a kind of blocks. So while the period in force is above the configured one, a kind gets its own
 * period if only a share s of its samples was not freed again:
 *
 *     period in force / sqrt(s)        in powers of two, at most 2^(TM_SHIFTS - 1) times
 *
 * (With a given number of samples, this distribution finds most of what stays: it follows the square root of
 * the bytes that stay per allocated byte.) The first samples of a kind are taken at the period in force, because a leak
 * often has the same size as much that is freed. If they do not stay, the kind has the period of its size until there are
 * enough to tell. Each record keeps the period with which it was sampled, and
 * the period of a kind depends only on earlier blocks, so the sums stay unbiased. The controller spends what is
 * saved on a finer period for all.
 */
#include "core/state.h"
#include "period/period.h"

#define SMALL_SIZES 32u /* of 16 bytes each, like pymalloc's; then one for each power of two */
#define SMALLEST_POWER 9
#define FEWEST_SAMPLES 32u
#define FIRST_SAMPLES 4u
#define MEMORY_SAMPLES 512u
#define MIX_MEMORY 256.0
/* Cost of a discarded sample, as a part of the cost of one that is kept. */
#define DISCARDED 0.06

static uint32_t size_class(uint64_t bytes)
{
    if (bytes <= 16 * SMALL_SIZES)
        return bytes ? (uint32_t)(bytes - 1) / 16 : 0;
    uint32_t power = 63 - (uint32_t)__builtin_clzll(bytes), size = SMALL_SIZES + power - SMALLEST_POWER;
    return size < TM_SIZES ? size : TM_SIZES - 1;
}

uint32_t tm_churn_kind(uint64_t bytes, uint64_t functions)
{
    if (!functions || tm_is_large(bytes))
        return size_class(bytes);
    uint64_t hash = (functions + size_class(bytes)) * 0x9e3779b97f4a7c15ull;
    return TM_SIZES + (uint32_t)(hash >> 32) % (TM_KINDS - TM_SIZES); /* some share an entry */
}

/* Only while the period in force is above the configured one, or at the start, whose allowance then lasts
 * longer. */
static int is_thinned(uint64_t in_force)
{
    return in_force > __atomic_load_n(&tm_core.configured_period, __ATOMIC_RELAXED) || tm_control_starts();
}

/* The period is up to four times coarser than the factor by which the period in force was raised: what
 * is saved is spent on a finer period for the others, which cannot be finer than configured, and each discarded
 * sample also costs time. */
static uint64_t shifted(uint64_t period, uint32_t shift)
{
    uint64_t configured = __atomic_load_n(&tm_core.configured_period, __ATOMIC_RELAXED);
    uint64_t coarsest = __atomic_load_n(&tm_core.coarsest, __ATOMIC_RELAXED);
    if (!is_thinned(period))
        return period;
    while (shift && ((period << 2) >> shift < configured || period << shift > coarsest))
        shift--;
    return period << shift;
}

int tm_churn_asks_functions(uint64_t in_force)
{
    return __atomic_load_n(&tm_core.most_shift, __ATOMIC_RELAXED) != 0 && is_thinned(in_force);
}

uint32_t tm_churn_shift(uint64_t bytes, uint64_t functions)
{
    uint32_t shift = __atomic_load_n(&tm_core.kinds[tm_churn_kind(bytes, functions)].shift, __ATOMIC_RELAXED);
    return shift < TM_SHIFTS ? shift : __atomic_load_n(&tm_core.kinds[size_class(bytes)].shift, __ATOMIC_RELAXED);
}

uint64_t tm_churn_period(uint64_t bytes, uint64_t functions, uint64_t in_force)
{
    return shifted(in_force, tm_churn_shift(bytes, functions));
}

uint64_t tm_churn_coarsest(uint64_t in_force)
{
    return shifted(in_force, __atomic_load_n(&tm_core.most_shift, __ATOMIC_RELAXED));
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

/* A quarter stays, a sixteenth, ... `few`: the shift if there are too few samples to tell, and half of them are freed. */
static uint32_t shift_for(const struct tm_kind *kind, uint32_t few)
{
    uint32_t live = kind->taken - kind->ended, shift = 0;
    if (kind->taken < FEWEST_SAMPLES)
        return kind->taken < FIRST_SAMPLES || 2 * live >= kind->taken ? 0 : few;
    while (shift < TM_SHIFTS - 1 && (live + 1) << (2 * (shift + 1)) <= kind->taken + 1)
        shift++;
    return shift;
}

/* Non-zero: a period has changed. */
static int count_taken(struct tm_kind *kind, uint32_t few)
{
    if (++kind->taken >= MEMORY_SAMPLES) {
        kind->taken /= 2;
        kind->ended /= 2;
    }
    uint32_t shift = shift_for(kind, few);
    if (shift == kind->shift)
        return 0;
    tm_core.kinds_of_shift[kind->shift] -= kind->shift > 0;
    tm_core.kinds_of_shift[shift] += shift > 0;
    __atomic_store_n(&kind->shift, shift, __ATOMIC_RELAXED);
    return 1;
}

/* Recent samples by shift. Large blocks have a period of their own. */
static void count_mix(uint64_t bytes, uint32_t shift, double period)
{
    for (uint32_t other = 0; other < TM_SHIFTS; other++)
        tm_core.mix[other] *= 1.0 - 1.0 / MIX_MEMORY;
    tm_core.mix[shift] += tm_is_large(bytes) ? 0 : period;
}

void tm_churn_taken(uint64_t bytes, uint64_t functions, double period)
{
    uint32_t kind = tm_churn_kind(bytes, functions), size = size_class(bytes);
    count_mix(bytes, tm_churn_shift(bytes, functions), period);
    int has_changed = count_taken(&tm_core.kinds[size], 0);
    if (kind != size)
        has_changed |= count_taken(&tm_core.kinds[kind], TM_SHIFTS);
    if (!has_changed)
        return;
    uint32_t most = TM_SHIFTS - 1;
    while (most && !tm_core.kinds_of_shift[most])
        most--;
    __atomic_store_n(&tm_core.most_shift, most, __ATOMIC_RELAXED);
    tm_publish_period();
}

/* Old samples are forgotten: their ends do not count as recent ones. */
static void count_ended(struct tm_kind *kind)
{
    kind->ended += kind->ended < kind->taken;
}

void tm_churn_ended(uint64_t bytes, uint32_t kind)
{
    uint32_t size = size_class(bytes);
    count_ended(&tm_core.kinds[size]);
    if (kind != size)
        count_ended(&tm_core.kinds[kind]);
}

void tm_publish_period(void)
{
    uint64_t small = tm_churn_coarsest(tm_core.period), large = tm_large_coarsest(tm_core.period);
    tm_core.header->period_bytes = large > small ? large : small;
}
