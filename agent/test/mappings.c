/* mappings.c - compares mappings with a plain map of mapped pages. */
#include <errno.h>
#include <sys/resource.h>

#include "harness.h"

#define PAGE ((size_t)TM_PAGE)
#define READ_WRITE (PROT_READ | PROT_WRITE)
#define ANONYMOUS (MAP_PRIVATE | MAP_ANONYMOUS)

static void on(void)
{
    agent_on("period=1", 5); /* every mapping is a sample of weight 1 */
    no_controller();
}

static char *map(size_t pages)
{
    char *start = tidemark_test_mmap(NULL, pages * PAGE, READ_WRITE, ANONYMOUS, -1, 0);
    CHECK(start != MAP_FAILED);
    return start;
}

static double live_pages(void)
{
    return site_sums().live_bytes / (double)PAGE;
}

static void parts_go_one_by_one(void)
{
    on();
    char *start = map(10);
    CHECK(live_pages() == 10);
    CHECK(tidemark_test_munmap(start + 4 * PAGE, 2 * PAGE) == 0); /* middle */
    CHECK(live_pages() == 8);
    CHECK(tidemark_test_munmap(start + 3 * PAGE, 4 * PAGE) == 0); /* over the hole */
    CHECK(live_pages() == 6);
    CHECK(tidemark_test_munmap(start, PAGE) == 0);
    CHECK(live_pages() == 5 && site_sums().live_samples == 1);
    CHECK(tidemark_test_munmap(start, 10 * PAGE) == 0);
    CHECK(live_pages() == 0 && site_sums().live_samples == 0 && tm_core.fragment_count == 0);
    CHECK(tm_core.header->frees_seen == 1);
}

static void one_call_may_end_several(void)
{
    on();
    char *reserved = tidemark_test_mmap(NULL, 30 * PAGE, PROT_NONE, ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(reserved != MAP_FAILED && live_pages() == 0);
    for (int i = 0; i < 3; i++)
        CHECK(tidemark_test_mmap(reserved + i * 10 * PAGE, 10 * PAGE, READ_WRITE, ANONYMOUS | MAP_FIXED, -1, 0) !=
              MAP_FAILED);
    CHECK(live_pages() == 30 && site_sums().live_samples == 3);
    CHECK(tidemark_test_munmap(reserved, 30 * PAGE) == 0);
    CHECK(live_pages() == 0 && tm_core.fragment_count == 0);
}

static void fixed_replaces(void)
{
    on();
    char *start = map(10);
    CHECK(tidemark_test_mmap(start + 2 * PAGE, 3 * PAGE, PROT_NONE, ANONYMOUS | MAP_FIXED, -1, 0) == start + 2 * PAGE);
    CHECK(live_pages() == 7);
    CHECK(tidemark_test_mmap(start, 10 * PAGE, READ_WRITE, ANONYMOUS | MAP_FIXED, -1, 0) == start);
    CHECK(live_pages() == 10);
    tidemark_test_munmap(start, 10 * PAGE);
    CHECK(live_pages() == 0);
}

static void remaps_carry_their_sample(void)
{
    on();
    char *start = map(10);
    start = tidemark_test_mremap(start, 10 * PAGE, 25 * PAGE, MREMAP_MAYMOVE);
    CHECK(start != MAP_FAILED && live_pages() == 25 && site_sums().live_samples == 2);
    CHECK(site_sums().allocated_bytes == 25.0 * PAGE);
    start = tidemark_test_mremap(start, 25 * PAGE, 5 * PAGE, 0);
    CHECK(start != MAP_FAILED && live_pages() == 5 && site_sums().live_samples == 1);
    char *place = map(8);
    CHECK(live_pages() == 13);
    start = tidemark_test_mremap(start, 5 * PAGE, 5 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, place);
    CHECK(start == place && live_pages() == 8); /* 5 moved over the first 5 of 8 */
    CHECK(tidemark_test_mremap(start, 3 * PAGE + 1, (size_t)1 << 50, 0) == MAP_FAILED && live_pages() == 8);
    CHECK(tidemark_test_munmap(place, 8 * PAGE) == 0);
    CHECK(live_pages() == 0 && tm_core.fragment_count == 0);
}

static const struct tm_site *last_site(void)
{
    return tm_at(TM_SECTION_SITES, tm_core.rooms[TM_SECTION_SITES].count - 1);
}

static void growth_counts_for_the_resizer(void)
{
    on();
    char *start = map(3);
    const struct tm_site *mapper = last_site();
    for (size_t pages = 3; pages < 60; pages += 3) {
        char *apart = map(1); /* sometimes in the way, so that it moves */
        start = tidemark_test_mremap(start, pages * PAGE, (pages + 3) * PAGE, MREMAP_MAYMOVE);
        CHECK(start != MAP_FAILED);
        tidemark_test_munmap(apart, PAGE);
    }
    const struct tm_site *resizer = last_site();
    CHECK(mapper->live_samples == 1 && mapper->live_bytes == 3.0 * PAGE);
    CHECK(resizer != mapper && resizer->live_samples == 19 && resizer->live_bytes == 57.0 * PAGE);
    CHECK(tidemark_test_munmap(start + 30 * PAGE, 30 * PAGE) == 0);
    CHECK(resizer->live_samples == 9 && mapper->live_samples == 1 && live_pages() == 30);
    CHECK(tidemark_test_munmap(start, 30 * PAGE) == 0);
    CHECK(live_pages() == 0 && tm_core.fragment_count == 0);
}

/* The kernel reports the kind of a mapping that was not sampled before it grew. */
static void growth_of_untracked_mappings(void)
{
    on();
    char *memory = mmap(NULL, 2 * PAGE, READ_WRITE, ANONYMOUS, -1, 0);
    memory = tidemark_test_mremap(memory, 2 * PAGE, 5 * PAGE, MREMAP_MAYMOVE);
    CHECK(memory != MAP_FAILED && live_pages() == 3 && last_site()->domain == TM_DOMAIN_MAPPED);
    FILE *self = fopen("/proc/self/exe", "rb");
    char *file = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fileno(self), 0);
    file = tidemark_test_mremap(file, PAGE, 3 * PAGE, MREMAP_MAYMOVE);
    CHECK(file != MAP_FAILED && live_pages() == 5 && last_site()->domain == TM_DOMAIN_FILES);
    fclose(self);
    char *none = mmap(NULL, PAGE, PROT_NONE, ANONYMOUS, -1, 0);
    none = tidemark_test_mremap(none, PAGE, 9 * PAGE, MREMAP_MAYMOVE);
    CHECK(none != MAP_FAILED && live_pages() == 5);
    tidemark_test_munmap(none, 9 * PAGE);
    tidemark_test_munmap(file, 3 * PAGE);
    tidemark_test_munmap(memory, 5 * PAGE);
    CHECK(live_pages() == 0 && tm_core.fragment_count == 0);
}

static void failures_change_nothing(void)
{
    on();
    char *start = map(10);
    CHECK(tidemark_test_munmap(start + 1, PAGE) == -1 && errno == EINVAL);
    CHECK(tidemark_test_mmap(NULL, 0, READ_WRITE, ANONYMOUS, -1, 0) == MAP_FAILED && errno == EINVAL);
    CHECK(tidemark_test_mmap(NULL, (size_t)1 << 60, READ_WRITE, ANONYMOUS, -1, 0) == MAP_FAILED);
    CHECK(tidemark_test_mmap(start + 1, PAGE, READ_WRITE, ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED);
    CHECK(live_pages() == 10 && site_sums().live_samples == 1);
    tidemark_test_munmap(start, 10 * PAGE);
}

static void the_newest_failure_is_noted(void)
{
    on();
    char *start = map(2);
    const struct tm_segment_header *header = tm_core.header;
    /* Wrong arguments are no failure. */
    CHECK(tidemark_test_mmap(NULL, 0, READ_WRITE, ANONYMOUS, -1, 0) == MAP_FAILED);
    CHECK(header->failed_bytes == 0 && header->failed_ms == 0);
    struct rlimit before, little;
    CHECK(getrlimit(RLIMIT_AS, &before) == 0);
    little = before;
    little.rlim_cur = 16 * PAGE; /* much less than is mapped */
    uint64_t ms = tm_now_ms();
    CHECK(setrlimit(RLIMIT_AS, &little) == 0);
    void *reserved = tidemark_test_mmap(NULL, 300 * PAGE, PROT_NONE, ANONYMOUS, -1, 0);
    uint64_t after_reserved = header->failed_bytes;
    void *mapped = tidemark_test_mmap(NULL, 300 * PAGE + 1, READ_WRITE, ANONYMOUS, -1, 0);
    int why = errno;
    uint64_t after_mapped = header->failed_bytes, limit = header->failed_address_space_limit;
    void *grown = tidemark_test_mremap(start, 2 * PAGE, 402 * PAGE, MREMAP_MAYMOVE);
    setrlimit(RLIMIT_AS, &before);
    CHECK(reserved == MAP_FAILED && after_reserved == 0);
    CHECK(mapped == MAP_FAILED && why == ENOMEM && after_mapped == 301 * PAGE);
    CHECK(limit == 16 * PAGE && header->failed_ms >= ms);
    CHECK(grown == MAP_FAILED && header->failed_bytes == 400 * PAGE);
    CHECK(tidemark_test_munmap(start, 2 * PAGE) == 0);
}

static void random_calls_agree_with_a_page_map(void)
{
    enum { PAGES = 400 };
    static uint8_t mapped[PAGES];
    on();
    struct tm_thread_state random = {.random = 4711};
    char *area = mmap(NULL, PAGES * PAGE, PROT_NONE, ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(area != MAP_FAILED);
    int moves = 0;
    for (int step = 0; step < 20000; step++) {
        unsigned at = (unsigned)(tm_random(&random) % PAGES), n = 1 + (unsigned)(tm_random(&random) % 20);
        if (at + n > PAGES)
            n = PAGES - at;
        unsigned already = 0;
        for (unsigned i = 0; i < n; i++)
            already += mapped[at + i];
        unsigned to = (unsigned)(tm_random(&random) % PAGES), wider = n + (unsigned)(tm_random(&random) % 20);
        int is_apart = to + wider <= PAGES && (to + wider <= at || to >= at + n);
        if (step % 3 == 2 && already == n && is_apart &&
            tidemark_test_mremap(area + at * PAGE, n * PAGE, wider * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED,
                                 area + to * PAGE) != MAP_FAILED) { /* only a single mapping can be moved */
            CHECK(mmap(area + at * PAGE, n * PAGE, PROT_NONE, ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) != MAP_FAILED);
            memset(mapped + at, 0, n);
            memset(mapped + to, 1, wider);
            moves++;
        } else if (step % 2 && (already == 0 || step % 4 == 1)) {
            CHECK(tidemark_test_mmap(area + at * PAGE, n * PAGE, READ_WRITE, ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED);
            memset(mapped + at, 1, n);
        } else {
            CHECK(tidemark_test_munmap(area + at * PAGE, n * PAGE) == 0);
            CHECK(mmap(area + at * PAGE, n * PAGE, PROT_NONE, ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) != MAP_FAILED);
            memset(mapped + at, 0, n);
        }
        unsigned truth = 0;
        for (unsigned i = 0; i < PAGES; i++)
            truth += mapped[i];
        CHECK_NEAR(live_pages(), truth, 1e-6);
    }
    CHECK(moves > 100);
    tidemark_test_munmap(area, PAGES * PAGE);
    CHECK(live_pages() == 0 && tm_core.fragment_count == 0 && site_sums().live_samples == 0);
}

static void reservations_do_not_count(void)
{
    on();
    char *none = tidemark_test_mmap(NULL, 64 * PAGE, PROT_NONE, ANONYMOUS, -1, 0);
    char *lazy = tidemark_test_mmap(NULL, 64 * PAGE, READ_WRITE, ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(none != MAP_FAILED && lazy != MAP_FAILED && tm_core.header->samples == 0);
    tidemark_test_munmap(none, 64 * PAGE);
    tidemark_test_munmap(lazy, 64 * PAGE);
}

/* They count for their sites, but not in the sums of live and allocated memory. */
static void files_are_distinguished(void)
{
    on();
    FILE *self = fopen("/proc/self/exe", "rb");
    char *file = tidemark_test_mmap(NULL, 3 * PAGE, PROT_READ, MAP_PRIVATE, fileno(self), 0);
    CHECK(file != MAP_FAILED && live_pages() == 3);
    const struct tm_site *site = last_site();
    CHECK(site->domain == TM_DOMAIN_FILES && site->live_samples == 1);
    const struct tm_segment_header *header = tm_core.header;
    CHECK(header->samples == 1 && header->live_bytes == 0 && header->allocated_bytes == 0);
    char *memory = map(2);
    CHECK(header->live_bytes == 2.0 * PAGE && header->allocated_bytes == 2.0 * PAGE && live_pages() == 5);
    file = tidemark_test_mremap(file, 3 * PAGE, 2 * PAGE, 0);
    CHECK(file != MAP_FAILED && live_pages() == 4 && header->live_bytes == 2.0 * PAGE);
    tidemark_test_munmap(file, 2 * PAGE);
    CHECK(site->live_samples == 0 && header->live_bytes == 2.0 * PAGE);
    tidemark_test_munmap(memory, 2 * PAGE);
    CHECK(live_pages() == 0 && header->live_bytes == 0 && tm_core.fragment_count == 0);
    fclose(self);
}

static void pieces_are_bounded(void)
{
    enum { PIECES = 6000 };
    on();
    char *start = map(2 * PIECES);
    for (int i = 0; i < PIECES; i++) /* every second page: more pieces than there is room for */
        CHECK(tidemark_test_munmap(start + 2 * (size_t)i * PAGE, PAGE) == 0);
    CHECK(tm_core.fragment_count <= TM_FRAGMENT_COUNT && live_pages() <= PIECES);
    CHECK(tidemark_test_munmap(start, 2 * PIECES * PAGE) == 0);
    CHECK(live_pages() == 0 && tm_core.fragment_count == 0);
}

int main(void)
{
    begin_tests();
    RUN(parts_go_one_by_one);
    RUN(one_call_may_end_several);
    RUN(fixed_replaces);
    RUN(remaps_carry_their_sample);
    RUN(growth_counts_for_the_resizer);
    RUN(growth_of_untracked_mappings);
    RUN(failures_change_nothing);
    RUN(the_newest_failure_is_noted);
    RUN(random_calls_agree_with_a_page_map);
    RUN(reservations_do_not_count);
    RUN(files_are_distinguished);
    RUN(pieces_are_bounded);
    return end_tests();
}
