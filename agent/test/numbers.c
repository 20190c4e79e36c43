/* numbers.c - compares our logarithm, exponential and gaps with the C library and with theory. */
#include "harness.h"

static void logarithm_agrees(void)
{
    for (double x = 1e-300; x < 1e300; x *= 1.37)
        CHECK_NEAR(tm_logarithm(x), log(x), 1e-14 * (1 + fabs(log(x))));
    for (double x = 0.5; x < 2.0; x += 0.0001)
        CHECK_NEAR(tm_logarithm(x), log(x), 4e-16);
}

static void chance_agrees(void)
{
    for (double x = 1e-12; x < 60; x *= 1.01) {
        double expected = -expm1(-x);
        CHECK_NEAR(tm_chance(x * 65536, 65536), expected, 4e-16 * expected + 1e-30);
    }
    CHECK(tm_chance(1e18, 1) == 1.0);
}

static void unit_is_uniform(void)
{
    struct tm_thread_state thread = {.random = 42};
    enum { DRAWS = 1000000, BINS = 100 };
    static int bins[BINS];
    for (int i = 0; i < DRAWS; i++) {
        double u = tm_random_unit(&thread);
        CHECK(u > 0 && u <= 1);
        bins[(int)(u * BINS) == BINS ? BINS - 1 : (int)(u * BINS)]++;
    }
    double chi = 0;
    for (int i = 0; i < BINS; i++)
        chi += pow(bins[i] - DRAWS / BINS, 2) / (DRAWS / BINS);
    CHECK(chi > 50 && chi < 160); /* 99 degrees of freedom */
}

static void gaps_are_exponential(void)
{
    struct tm_thread_state thread = {.random = 7};
    static const uint64_t periods[] = {1, 3, 100, 65536, 1ull << 30};
    for (unsigned p = 0; p < sizeof periods / sizeof periods[0]; p++)
        for (double ratio = 0.25; ratio <= 4; ratio *= 2) {
            enum { DRAWS = 200000 };
            uint64_t size = (uint64_t)ceil(ratio * (double)periods[p]);
            int hits = 0;
            for (int i = 0; i < DRAWS; i++)
                hits += tm_draw(&thread, periods[p]) < size;
            double expected = -expm1(-(double)size / (double)periods[p]);
            CHECK_NEAR((double)hits / DRAWS, expected, 5 * sqrt(expected * (1 - expected) / DRAWS) + 1e-9);
        }
}

static void formats_plainly(void)
{
    char text[32];
    CHECK(tm_format(text, sizeof text, "%s is %d, %u, %x%%", "x", -5, 7u, 255u) == strlen("x is -5, 7, ff%"));
    CHECK(strcmp(text, "x is -5, 7, ff%") == 0);
    CHECK(tm_format(text, 8, "%s", "longer than that") == 7 && strcmp(text, "longer ") == 0);
}

int main(void)
{
    begin_tests();
    RUN(logarithm_agrees);
    RUN(chance_agrees);
    RUN(unit_is_uniform);
    RUN(gaps_are_exponential);
    RUN(formats_plainly);
    return end_tests();
}
