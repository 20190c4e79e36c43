/* late.c - entering a program that runs and leaving it: slots of every kind, threads, forks.
 *
 *     late [CYCLES]     so many attaches under the load of threads
 *
 * The objects of test/late/ are opened as any program opens libraries; they lie in the folder
 * ../late beside this program. The core behaves as if it had been loaded late.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <sched.h>

#include "../include/tidemark.h"
#include "../src/slots.h"
#include "harness.h"

extern int tm_test_late;

struct object {
    void *handle;
    void *(*take)(size_t);
    void *(*change)(void *, size_t);
    char *(*copy)(const char *);
    void (*give)(void *);
};

static const char *const kinds[] = {"lazy", "now", "noplt", "norelro", "data", "ifunc"};
#define KINDS (sizeof kinds / sizeof *kinds)
static char folder[512];
static int cycles = 150;

static struct object open_object(const char *kind)
{
    char path[600];
    snprintf(path, sizeof path, "%s/%s.so", folder, kind);
    struct object object = {.handle = dlopen(path, strcmp(kind, "lazy") == 0 ? RTLD_LAZY : RTLD_NOW)};
    if (!object.handle)
        fprintf(stderr, "# %s\n", dlerror());
    CHECK(object.handle != NULL);
    object.take = (void *(*)(size_t))dlsym(object.handle, "object_take");
    object.change = (void *(*)(void *, size_t))dlsym(object.handle, "object_change");
    object.copy = (char *(*)(const char *))dlsym(object.handle, "object_copy");
    object.give = (void (*)(void *))dlsym(object.handle, "object_give");
    CHECK(object.take && object.change && object.copy && object.give);
    return object;
}

/* In the case's own process: to the children that it forks the library is inherited. */
static void load(void)
{
    static int loaded;
    if (loaded++)
        return;
    tm_test_late = 1;
    tm_start();
}

static void arm(const char *options)
{
    char why[256] = "", text[300];
    load();
    snprintf(text, sizeof text, "dir=%s,%s", test_directory, options);
    if (tidemark_arm(text, why, sizeof why) != 0)
        fprintf(stderr, "# %s\n", why);
    CHECK(tm_armed() && !why[0]);
}

static void disarm(void)
{
    char why[256];
    CHECK(tidemark_disarm(why, sizeof why) == 0);
    CHECK(!tm_armed() && tm_settings.enabled == 0);
}

/* ---- what an object's memory looks like -------------------------------------------------- */

struct image {
    const char *kind;
    unsigned char bytes[32768];
    size_t length;
};

static int copy_image(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)size;
    struct image *image = data;
    char end[64];
    snprintf(end, sizeof end, "/%s.so", image->kind);
    size_t length = strlen(info->dlpi_name), tail = strlen(end);
    if (length < tail || strcmp(info->dlpi_name + length - tail, end) != 0)
        return 0;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        if (header->p_type != PT_LOAD || !(header->p_flags & PF_W))
            continue;
        CHECK(image->length + header->p_memsz <= sizeof image->bytes);
        memcpy(image->bytes + image->length, (const void *)(info->dlpi_addr + header->p_vaddr), header->p_memsz);
        image->length += header->p_memsz;
    }
    return 1;
}

static void take_image(struct image *image, const char *kind)
{
    image->kind = kind;
    image->length = 0;
    CHECK(dl_iterate_phdr(copy_image, image) == 1 && image->length > 0);
}

static int same_image(const struct image *before)
{
    static struct image after;
    take_image(&after, before->kind);
    return after.length == before->length && memcmp(after.bytes, before->bytes, after.length) == 0;
}

/* ---- cases ------------------------------------------------------------------------------------ */

static void use(const struct object *object)
{
    uint64_t samples = tm_core.header->samples, frees = tm_core.header->frees_seen;
    void *block = object->take(5000);
    CHECK(tm_is_sampled(block) && tm_core.header->samples == samples + 1);
    block = object->change(block, 9000);
    CHECK(tm_is_sampled(block) && tm_core.header->samples == samples + 2);
    object->give(block);
    CHECK(!tm_is_sampled(block) && tm_core.header->frees_seen == frees + 2);
    char *text = object->copy("a text of some length, but no more");
    CHECK(tm_is_sampled(text) && strcmp(text, "a text of some length, but no more") == 0);
    object->give(text);
}

static void use_unseen(const struct object *object)
{
    void *block = object->change(object->take(5000), 9000);
    CHECK(block != NULL);
    object->give(block);
    char *text = object->copy("text");
    CHECK(strcmp(text, "text") == 0);
    object->give(text);
}

static struct image images[KINDS];

/* Lazy slots are tried both ways: never resolved before the attach, and resolved. */
static void every_kind(int used_before)
{
    struct object objects[KINDS];
    for (unsigned i = 0; i < KINDS; i++) {
        objects[i] = open_object(kinds[i]);
        if (used_before)
            use_unseen(&objects[i]);
        take_image(&images[i], kinds[i]);
    }
    void *old = objects[0].take(70000); /* from before: passes by */
    if (!used_before)
        take_image(&images[0], kinds[0]);
    for (int round = 0; round < 3; round++) {
        arm("period=1");
        no_controller();
        for (unsigned i = 0; i < KINDS; i++) {
            CHECK(!same_image(&images[i]));
            use(&objects[i]);
        }
        if (round == 0)
            objects[0].give(old);
        CHECK(site_sums().live_samples < 20);
        disarm();
        for (unsigned i = 0; i < KINDS; i++)
            CHECK(same_image(&images[i]) || (i == 0 && round == 0));
        if (round == 0)
            take_image(&images[0], kinds[0]);
    }
    for (unsigned i = 0; i < KINDS; i++)
        use_unseen(&objects[i]);
}

static void slots_of_every_kind_resolved(void)
{
    every_kind(1);
}

static void slots_of_every_kind_unresolved(void)
{
    every_kind(0);
}

static void objects_opened_later_take_part(void)
{
    struct object first = open_object("now");
    arm("period=1");
    no_controller();
    struct object second = open_object("noplt");
    for (int i = 0; i < 200 && tm_slots_count().waiting + (second.take == NULL) == 0; i++) {
        usleep(11000); /* looks are 10 ms apart */
        first.give(first.take(1000));
        void *block = second.take(1000);
        int seen = tm_is_sampled(block);
        second.give(block);
        if (seen)
            break;
    }
    use(&second);
    disarm();
    use_unseen(&second);
}

static _Atomic int stop;

static void *churn(void *argument)
{
    struct object objects[KINDS];
    memcpy(objects, argument, sizeof objects);
    struct tm_thread_state random = {.random = (uintptr_t)&objects | 1};
    void *blocks[64] = {0};
    while (!stop) {
        const struct object *one = &objects[tm_random(&random) % KINDS], *other = &objects[tm_random(&random) % KINDS];
        unsigned at = (unsigned)(tm_random(&random) % 64);
        other->give(blocks[at]);
        blocks[at] = one->take(1 + tm_random(&random) % 3000);
        CHECK(blocks[at] != NULL);
        memset(blocks[at], 1, 1);
        if (at % 4 == 0)
            blocks[at] = other->change(blocks[at], 1 + tm_random(&random) % 3000);
    }
    for (unsigned i = 0; i < 64; i++)
        objects[0].give(blocks[i]);
    return NULL;
}

#ifndef __SANITIZE_THREAD__ /* its runtime cannot follow libraries that come and go among threads */
static void *come_and_go(void *unused)
{
    while (!stop) {
        struct object object = open_object("norelro");
        use_unseen(&object);
        dlclose(object.handle);
        sched_yield();
    }
    return unused;
}
#endif

static unsigned count_lines(const char *path)
{
    unsigned lines = 0;
    FILE *file = fopen(path, "r");
    for (int c; file && (c = fgetc(file)) != EOF;)
        lines += c == '\n';
    if (file)
        fclose(file);
    return lines;
}

/* Under load from four threads, through objects of every kind; one is closed and opened meanwhile. */
static void many_cycles_among_threads(void)
{
    struct object objects[KINDS];
    pthread_t threads[5];
    load();
    for (unsigned i = 0; i < KINDS; i++) {
        objects[i] = open_object(kinds[i]);
        use_unseen(&objects[i]);
    }
    for (int i = 0; i < 4; i++)
        CHECK(pthread_create(&threads[i], NULL, churn, objects) == 0);
#ifndef __SANITIZE_THREAD__
    CHECK(pthread_create(&threads[4], NULL, come_and_go, NULL) == 0);
#endif
    for (unsigned i = 0; i < KINDS; i++)
        if (strcmp(kinds[i], "norelro") != 0)
            take_image(&images[i], kinds[i]);
    const uint8_t *segment = NULL;
    unsigned lines = 0;
    uint64_t samples = 0;
    for (int cycle = 0; cycle < cycles; cycle++) {
        arm("period=4K");
        uint64_t taken = 0;
        for (int wait = 0; wait < 200 && taken < 3; wait++) {
            sched_yield();
            if (tm_lock()) {
                taken = tm_core.header->samples;
                tm_unlock();
            }
        }
        samples += taken;
        CHECK(!segment || segment == tm_core.segment);
        segment = tm_core.segment;
        disarm();
        if (cycle == cycles / 3)
            lines = count_lines("/proc/self/maps");
    }
    stop = 1;
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
#ifndef __SANITIZE_THREAD__
    pthread_join(threads[4], NULL);
#endif
    CHECK(samples > (uint64_t)cycles / 2);
    CHECK(count_lines("/proc/self/maps") < lines + 60); /* threads' stacks and heaps come and go, too */
    for (unsigned i = 0; i < KINDS; i++)
        CHECK(strcmp(kinds[i], "norelro") == 0 || same_image(&images[i]));
}

static unsigned calls_of_somebody_elses;

static void *somebody_elses(size_t bytes)
{
    calls_of_somebody_elses++;
    return tidemark_test_malloc(bytes);
}

struct slot_search {
    const char *kind;
    void *(*value)(size_t);
    void *(**slot)(size_t);
};

static int search_slot(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)size;
    struct slot_search *search = data;
    if (!strstr(info->dlpi_name, search->kind))
        return 0;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        if (header->p_type != PT_LOAD || !(header->p_flags & PF_W))
            continue;
        void *(**word)(size_t) = (void *(**)(size_t))(info->dlpi_addr + header->p_vaddr);
        for (size_t left = header->p_memsz / sizeof *word; left; left--, word++)
            if (*word == search->value)
                search->slot = word;
    }
    return 1;
}

static void *(**find_slot(const char *kind, void *(*value)(size_t)))(size_t)
{
    char end[64];
    snprintf(end, sizeof end, "/%s.so", kind);
    struct slot_search search = {end, value, NULL};
    dl_iterate_phdr(search_slot, &search);
    return search.slot;
}

static void another_tools_slots_are_left_alone(void)
{
    struct object object = open_object("norelro");
    arm("period=1");
    no_controller();
    struct tm_slot_counts counts = tm_slots_count();
    CHECK(counts.slots > 4 && counts.objects > 0 && counts.waiting == 0);
    CHECK(tidemark_arm("period=1", NULL, 0) == EALREADY);
    disarm();
    take_image(&images[0], "norelro");
    /* Somebody else's function over ours: it stays when we leave, and when we come again. */
    void *(**slot)(size_t) = find_slot("norelro", tidemark_test_malloc);
    CHECK(slot == NULL);
    arm("period=1");
    slot = find_slot("norelro", tidemark_test_malloc);
    CHECK(slot != NULL);
    *slot = somebody_elses;
    disarm();
    CHECK(*slot == somebody_elses);
    arm("period=1");
    no_controller();
    use(&object); /* theirs goes on to ours, as such wrappers do */
    CHECK(*slot == somebody_elses && calls_of_somebody_elses > 0);
    disarm();
    CHECK(*slot == somebody_elses);
    use_unseen(&object);
}

static void a_lapsed_lease_leaves(void)
{
    struct object object = open_object("now");
    use_unseen(&object);
    take_image(&images[0], "now");
    arm("period=64");
    no_controller();
    object.give(object.take(10000));
    tm_settings.pool.head->lease_until_ms = 1;
    for (int i = 0; i < 100; i++)
        object.give(object.take(10000));
    CHECK(!tm_armed() && tm_core.phase == TM_PHASE_UNBORN && same_image(&images[0]));
    CHECK(tm_slots_count().slots == 0 && tm_settings.pool.head->lease_until_ms == 0);
    arm("period=1");
    no_controller();
    object.give(object.take(TM_IDLE)); /* it found nothing recording a moment ago */
    use(&object);
    disarm();
    CHECK(same_image(&images[0]));
}

static void children_record_and_leave_for_themselves(void)
{
    struct object object = open_object("now");
    use_unseen(&object);
    take_image(&images[0], "now");
    arm("period=1");
    no_controller();
    void *inherited = object.take(5000);
    for (int i = 0; i < 3; i++) {
        int status = -1;
        pid_t pid = fork();
        if (pid == 0) {
            char path[300];
            object.give(inherited);
            object.give(object.take(100000));
            CHECK(tm_armed() && tm_core.pid == (uint32_t)getpid());
            if (tm_loader_answers()) {
                disarm();
                CHECK(same_image(&images[0]));
                arm("period=1");
                no_controller();
                use(&object);
                disarm();
            }
            snprintf(path, sizeof path, "%s/tidemark-%u.pool", test_directory, (unsigned)getpid());
            unlink(path);
            _exit(0);
        }
        CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    CHECK(tm_is_sampled(inherited));
    object.give(inherited);
    use(&object);
    disarm();
    CHECK(same_image(&images[0]));
}

static void a_thread_that_never_comes_back_bars_the_next(void)
{
    struct object object = open_object("now");
    use_unseen(&object);
    take_image(&images[0], "now");
    arm("period=64");
    void *block = object.take(10000);
    tm_core.lock = 1; /* a holder that stays away */
    tm_core.lock_owner = &block;
    char why[256] = "";
    CHECK(tidemark_disarm(why, sizeof why) == EBUSY && strncmp(why, "busy: ", 6) == 0);
    CHECK(!tm_armed() && same_image(&images[0]));
    object.give(block);
    use_unseen(&object);
    CHECK(tidemark_arm("period=64", why, sizeof why) == EBUSY && strncmp(why, "busy: ", 6) == 0);
    tm_core.lock = 0;
    tm_core.lock_owner = NULL;
    arm("period=1");
    no_controller();
    use(&object);
    disarm();
}

static void refusals_touch_nothing(void)
{
    struct object object = open_object("now");
    use_unseen(&object);
    take_image(&images[0], "now");
    static const char *const wrong[][2] = {
        {"pool=/nonexistent/pool", "pool: "}, {"pool=/dev/null", "pool: "},   {"pool=/proc/self/stat", "pool: "},
        {"period=64K,wrong", "options: "},    {"period=wrong", "options: "}, {"off", "options: "},
    };
    char why[256], small[12];
    load();
    for (unsigned i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        CHECK(tidemark_arm(wrong[i][0], why, sizeof why) != 0);
        CHECK(strncmp(why, wrong[i][1], strlen(wrong[i][1])) == 0);
        CHECK(tidemark_arm(wrong[i][0], small, sizeof small) != 0 && strlen(small) == sizeof small - 1);
        CHECK(tidemark_arm(wrong[i][0], NULL, 0) != 0);
        CHECK(!tm_armed() && same_image(&images[0]));
    }
    char status[2048];
    CHECK(tidemark_status(status, sizeof status) == strlen(status) && strstr(status, "\"state\":\"inert\""));
    CHECK(tidemark_status(status, 10) == 9 && strlen(status) == 9);
    arm("period=1");
    CHECK(tidemark_status(status, sizeof status) == strlen(status) && strstr(status, "\"state\":\"armed\""));
    disarm();
    CHECK(tidemark_disarm(why, sizeof why) == 0);
}

/* The heap of the attach itself, sampled with chance, comes out right over many attaches. */
static void sums_are_unbiased_from_the_first_byte(void)
{
    struct object object = open_object("noplt");
    double live = 0, variance = 0;
    static void *blocks[2000];
    for (int round = 0; round < 40; round++) {
        arm("period=64K");
        no_controller();
        for (int i = 0; i < 2000; i++)
            blocks[i] = object.take(1000);
        struct tm_site sums = site_sums();
        live += sums.live_bytes;
        variance += sums.live_variance;
        for (int i = 0; i < 2000; i++)
            object.give(blocks[i]);
        CHECK(site_sums().live_samples < 5);
        disarm();
    }
    CHECK_NEAR(live, 40 * 2000 * 1000.0, 5.5 * sqrt(variance));
}

int main(int count, char **arguments)
{
    if (count > 1)
        cycles = atoi(arguments[1]);
    const char *slash = strrchr(arguments[0], '/');
    snprintf(folder, sizeof folder, "%.*s/../late", slash ? (int)(slash - arguments[0]) : 1, slash ? arguments[0] : ".");
    begin_tests();
    RUN(slots_of_every_kind_resolved);
    RUN(slots_of_every_kind_unresolved);
    RUN(objects_opened_later_take_part);
    RUN(many_cycles_among_threads);
    RUN(another_tools_slots_are_left_alone);
    RUN(a_lapsed_lease_leaves);
    RUN(children_record_and_leave_for_themselves);
    RUN(a_thread_that_never_comes_back_bars_the_next);
    RUN(refusals_touch_nothing);
    RUN(sums_are_unbiased_from_the_first_byte);
    return end_tests();
}
