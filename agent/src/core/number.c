/* number.c - random numbers, and the logarithm and exponential that sampling needs.
 *
 * libm is not linked: its symbols changed version in glibc 2.29, and loading it into a
 * program that does not use it would change that program.
 */
#include "core/core.h"
#include "core/number.h"

/* xorshift64* (Vigna, "An experimental exploration of Marsaglia's xorshift generators,
 * scrambled", 2016). Seeded per thread; see sampling/sample.c. */
uint64_t tm_random(struct tm_thread_state *thread)
{
    uint64_t x = thread->random;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    thread->random = x;
    return x * 0x2545f4914f6cdd1dull;
}

double tm_random_unit(struct tm_thread_state *thread)
{
    return (double)((tm_random(thread) >> 11) + 1) * 0x1p-53;
}

/* 1/k: a division takes as long as the whole term without it. */
static const double inverse[] = {0,        1.0 / 1,  1.0 / 2,  1.0 / 3,  1.0 / 4,  1.0 / 5,  1.0 / 6,  1.0 / 7,
                                 1.0 / 8,  1.0 / 9,  1.0 / 10, 1.0 / 11, 1.0 / 12, 1.0 / 13, 1.0 / 14, 1.0 / 15,
                                 1.0 / 16, 1.0 / 17, 1.0 / 18, 1.0 / 19, 1.0 / 20, 1.0 / 21, 1.0 / 22, 1.0 / 23};

/* ln x = e ln 2 + ln m with m in [sqrt 1/2, sqrt 2); ln m = 2 artanh((m-1)/(m+1)), whose
 * series in f^2 <= 0.0295 is exact to the last bits after twelve terms. */
double tm_logarithm(double x)
{
    union {
        double value;
        uint64_t bits;
    } number = {.value = x};
    int exponent = (int)(number.bits >> 52) - 1023;
    number.bits = (number.bits & 0x000fffffffffffffull) | 0x3ff0000000000000ull;
    double m = number.value;
    if (m > 1.4142135623730951) {
        m *= 0.5;
        exponent++;
    }
    double f = (m - 1.0) / (m + 1.0), square = f * f, sum = 0.0;
    for (int k = 23; k >= 1; k -= 2)
        sum = sum * square + inverse[k];
    return exponent * 0.6931471805599453 + 2.0 * f * sum;
}

double tm_chance(double bytes, double period)
{
    double x = bytes / period;
    if (x > 40.0)
        return 1.0;
    if (x < 0.5) { /* alternating series without cancellation for small values; most samples are small */
        double sum = 0.0;
        for (int k = x < 0x1p-6 ? 7 : 16; k >= 1; k--)
            sum = (1.0 - sum) * x * inverse[k];
        return sum;
    }
    /* exp(-x) = 2^-k exp(-r), |r| <= ln 2 / 2 */
    int k = (int)(x / 0.6931471805599453 + 0.5);
    double r = x - k * 0.6931471805599453, sum = 0.0;
    for (int i = 16; i >= 1; i--)
        sum = (1.0 + sum) * -r * inverse[i];
    union {
        uint64_t bits;
        double value;
    } scale = {.bits = (uint64_t)(1023 - k) << 52};
    return 1.0 - (1.0 + sum) * scale.value;
}

/* The floor keeps the probability exact: floor(E) < s exactly if E < s for whole s, and the rest of a gap that
 * was not reached is again such a gap. */
uint64_t tm_draw(struct tm_thread_state *thread, uint64_t period)
{
    double gap = -tm_logarithm(tm_random_unit(thread)) * (double)period;
    return gap < 0x1p61 ? (uint64_t)gap : 1ull << 61;
}
