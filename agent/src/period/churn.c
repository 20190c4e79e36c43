/* churn.c - samples sizes and places whose blocks rarely stay live less often, in favour of the others.
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
 * the bytes that stay per allocated byte.)
 *
 * A leak often has the same sizes as temporary blocks. So within such a size, s is the share of the place in the
 * Python code (function and instruction) that allocates: the innermost frame is read quickly, without a lock.
 * What is known about the size counts like PRIOR samples of the place.
 *
 * Each record keeps the period with which it was sampled, and the period of a block depends only on earlier
 * blocks, so the sums stay unbiased. The controller spends what is saved on a finer period for all sizes.
 */
#include "core/state.h"
#include "period/period.h"

#define SMALL_SIZES 32u /* of 16 bytes each, like pymalloc's; then one for each power of two */
#define SMALLEST_POWER 9
#define FEWEST_SAMPLES 32u
#define MEMORY_SAMPLES 512u
#define MIX_MEMORY 256.0
#define PRIOR 16u
#define PLACE_COUNT 2048u
/* Cost of a discarded sample, as a part of the cost of one that is kept. */
#define DISCARDED 0.08

/* Two entries are searched for a place; the one with fewer samples makes room for a new place. */
static struct place {
    uint32_t place; /* (atomic) 0: empty */
    uint16_t taken, ended; /* (atomic) recent samples */
} places[PLACE_COUNT] TM_WIPED;
static uint32_t place_of_site[TM_SITE_COUNT] TM_WIPED;

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

/* A quarter stays, a sixteenth, ... */
static uint32_t shift_for(uint32_t taken, uint32_t ended)
{
    uint32_t shift = 0;
    while (shift < TM_SHIFTS - 1 && (taken - ended + 1) << (2 * (shift + 1)) <= taken + 1)
        shift++;
    return shift;
}

static struct place *find_place(uint32_t place)
{
    struct place *entry = &places[place % PLACE_COUNT];
    for (int i = 0; i < 2; i++, entry = &places[(place % PLACE_COUNT) ^ 1])
        if (__atomic_load_n(&entry->place, __ATOMIC_RELAXED) == place)
            return entry;
    return NULL;
}

static uint32_t shift_of(uint64_t bytes, uint32_t place)
{
    uint32_t of_size = __atomic_load_n(&size_of(bytes)->shift, __ATOMIC_RELAXED);
    if (!of_size || !place)
        return of_size;
    const struct place *known = find_place(place);
    uint32_t taken = known ? __atomic_load_n(&known->taken, __ATOMIC_RELAXED) : 0;
    uint32_t ended = known ? __atomic_load_n(&known->ended, __ATOMIC_RELAXED) : 0;
    uint32_t shift = shift_for(taken + PRIOR, ended + PRIOR - (PRIOR >> (2 * of_size)));
    uint32_t most = __atomic_load_n(&tm_core.most_shift, __ATOMIC_RELAXED);
    return shift < most ? shift : most;
}

int tm_churn_needs_place(uint64_t bytes, uint64_t in_force)
{
    uint32_t shift = __atomic_load_n(&size_of(bytes)->shift, __ATOMIC_RELAXED);
    return shift && shifted(in_force, shift) != in_force;
}

uint64_t tm_churn_period(uint64_t bytes, uint32_t place, uint64_t in_force)
{
    return shifted(in_force, shift_of(bytes, place));
}

uint64_t tm_churn_coarsest(uint64_t in_force)
{
    return shifted(in_force, tm_core.most_shift);
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

/* An entry for the place, which may be empty. */
static struct place *entry_for(uint32_t place)
{
    struct place *known = find_place(place), *entry = &places[place % PLACE_COUNT];
    if (known)
        return known;
    struct place *other = &places[(place % PLACE_COUNT) ^ 1];
    if (other->taken < entry->taken)
        entry = other;
    __atomic_store_n(&entry->taken, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&entry->ended, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&entry->place, place, __ATOMIC_RELAXED);
    return entry;
}

static void count_place(uint32_t place)
{
    if (!place)
        return;
    struct place *entry = entry_for(place);
    int is_full = entry->taken + 1u >= MEMORY_SAMPLES;
    __atomic_store_n(&entry->taken, (uint16_t)((entry->taken + 1) >> is_full), __ATOMIC_RELAXED);
    __atomic_store_n(&entry->ended, (uint16_t)(entry->ended >> is_full), __ATOMIC_RELAXED);
}

void tm_churn_taken(uint64_t bytes, double period, uint32_t place, uint32_t site)
{
    uint32_t used = shift_of(bytes, place);
    count_place(place);
    place_of_site[site] = place;
    struct tm_size *size = size_of(bytes);
    for (uint32_t shift = 0; shift < TM_SHIFTS; shift++)
        tm_core.mix[shift] *= 1.0 - 1.0 / MIX_MEMORY;
    tm_core.mix[used] += tm_is_large(bytes) ? 0 : period;
    if (++size->taken >= MEMORY_SAMPLES) {
        size->taken /= 2;
        size->ended /= 2;
    }
    uint32_t shift = size->taken < FEWEST_SAMPLES ? 0 : shift_for(size->taken, size->ended);
    if (shift == size->shift)
        return;
    __atomic_store_n(&size->shift, shift, __ATOMIC_RELAXED);
    uint32_t most = 0;
    for (unsigned i = 0; i < TM_SIZES; i++)
        if (tm_core.sizes[i].shift > most)
            most = tm_core.sizes[i].shift;
    __atomic_store_n(&tm_core.most_shift, most, __ATOMIC_RELAXED);
    tm_publish_period();
}

void tm_churn_ended(uint64_t bytes, uint32_t site)
{
    struct place *place = find_place(place_of_site[site]);
    if (place && place->place && place->ended < place->taken)
        __atomic_store_n(&place->ended, (uint16_t)(place->ended + 1), __ATOMIC_RELAXED);
    struct tm_size *size = size_of(bytes);
    size->ended += size->ended < size->taken; /* old samples are forgotten: their ends do not count as recent ones */
}

void tm_publish_period(void)
{
    tm_core.header->period_bytes = tm_churn_coarsest(tm_core.period);
}
