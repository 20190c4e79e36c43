/* slots.c - the pointers in loaded objects: of every kind, lazy, in objects loaded later, patched by other tools. */
#include "late/objects.h"

/* Lazy slots are tested both ways: never resolved before the attach, and resolved. */
static void every_kind(int used_before)
{
    struct object objects[KINDS];
    for (unsigned i = 0; i < KINDS; i++) {
        objects[i] = open_object(kinds[i]);
        if (used_before)
            use_unseen(&objects[i]);
        take_image(&images[i], kinds[i]);
    }
    void *old = objects[0].take(70000); /* allocated before: not seen */
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
        usleep(11000); /* checks are 10 ms apart */
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
    /* Another tool replaces our function: its pointer stays when we leave and when we attach again. */
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
    use(&object); /* their function calls ours, as such wrappers do */
    CHECK(*slot == somebody_elses && calls_of_somebody_elses > 0);
    disarm();
    CHECK(*slot == somebody_elses);
    use_unseen(&object);
}
static void somebodys_free(void *address)
{
    free(address);
}

static void *somebodys_malloc(size_t bytes)
{
    return malloc(bytes);
}

/* It calls the C library's own function, so our samples are freed without our seeing it. */
static void samples_end_when_another_tool_covers(void)
{
    struct object object = open_object("norelro");
    arm("period=1");
    no_controller();
    void *(**take)(size_t) = find_slot("norelro", tidemark_test_malloc);
    void *(**give)(size_t) = find_slot("norelro", (void *)tidemark_test_free);
    CHECK(take && give);

    void *kept = object.take(1000);
    CHECK(site_sums().live_bytes >= 1000);
    *take = somebody_elses; /* calls ours, so we see it */
    *give = (void *)somebodys_free;
    tm_check_covered();
    CHECK(!tm_covered() && !(tm_settings.limits & TM_LIMIT_COVERED) && site_sums().live_bytes >= 1000);

    *take = malloc;
    *give = (void *)tidemark_test_free;
    tm_check_covered();
    *give = (void *)somebodys_free;
    tm_check_covered();
    CHECK(tm_covered() && tm_settings.limits & TM_LIMIT_COVERED);
    CHECK(site_sums().live_bytes == 0 && site_sums().freed_bytes >= 1000);
    object.give(kept);
    kept = tidemark_test_malloc(1000); /* in an object that is not covered */
    CHECK(site_sums().live_bytes == 0);
    tidemark_test_free(kept);

    *give = (void *)free; /* it has left */
    tm_check_covered();
    CHECK(*take == tidemark_test_malloc && !tm_covered());
    kept = object.take(1 << 20); /* larger than any gap left from the time without samples */
    kept = object.change(kept, 1 << 21);
    CHECK(site_sums().live_bytes >= 1 << 20);
    object.give(kept);
    CHECK(site_sums().live_bytes == 0);
    disarm();
    use_unseen(&object);
}
/* A tool that was there first calls ours by chance, so it does not cover us; the pointers it restores are the C
 * library's, in slots where we have never been. */
static void slots_are_taken_when_a_tool_leaves_that_was_there_first(void)
{
    struct object object = open_object("norelro");
    void *(**take)(size_t) = find_slot("norelro", malloc);
    void *(**give)(size_t) = find_slot("norelro", (void *)free);
    CHECK(take && give);
    *take = somebody_elses;
    *give = (void *)somebodys_free;
    arm("period=1");
    no_controller();
    CHECK(*take == somebody_elses && !tm_covered());
    *take = malloc;
    *give = (void *)free;
    tm_check_covered();
    CHECK(*take == tidemark_test_malloc && *give == (void *)tidemark_test_free);
    use(&object);
    disarm();

    *take = somebodys_malloc; /* calls none of ours: known as soon as the agent is armed */
    *give = (void *)somebodys_free;
    arm("period=1");
    CHECK(tm_covered() && tm_settings.limits & TM_LIMIT_COVERED);
    *take = malloc;
    *give = (void *)free;
    disarm();
    use_unseen(&object);
}

/* Tools that patch slots leave pages writable that the loader had made read-only. Such an object cannot be
 * distinguished from one that is being loaded, until it has been in that state for a while. */
static int open_guarded(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)size;
    if (!strstr(info->dlpi_name, (const char *)data))
        return 0;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        uintptr_t start = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr, end = start + info->dlpi_phdr[i].p_memsz;
        start &= ~(uintptr_t)(TM_PAGE - 1), end &= ~(uintptr_t)(TM_PAGE - 1);
        if (info->dlpi_phdr[i].p_type == PT_GNU_RELRO)
            return mprotect((void *)start, end - start, PROT_READ | PROT_WRITE) == 0;
    }
    return 0;
}

static void objects_that_stay_writable_wait(void)
{
    struct object objects[KINDS];
    for (unsigned i = 0; i < KINDS; i++) {
        objects[i] = open_object(kinds[i]);
        use_unseen(&objects[i]);
        take_image(&images[i], kinds[i]);
    }
    CHECK(dl_iterate_phdr(open_guarded, "/now.so") == 1 && dl_iterate_phdr(open_guarded, "/data.so") == 1);
    arm("period=1");
    no_controller();
    CHECK(tm_slots_count().waiting == 2 && same_image(&images[1]) && same_image(&images[4]));
    use(&objects[2]);
    use_unseen(&objects[1]);
    dlclose(objects[3].handle); /* its slots are dropped while others move to the end of the list */
    for (int i = 0; i < 3000 && tm_slots_count().waiting; i++) {
        usleep(11000);
        objects[2].give(objects[2].take(1000));
    }
    CHECK(tm_slots_count().waiting == 0);
    for (unsigned i = 0; i < KINDS; i++)
        if (i != 3)
            use(&objects[i]);
    disarm();
    for (unsigned i = 0; i < KINDS; i++)
        CHECK(i == 3 || same_image(&images[i]));
    CHECK(find_slot("now", (void *(*)(size_t))tidemark_test_malloc) == NULL);
}

int main(int count, char **arguments)
{
    (void)count;
    begin_late_tests(arguments[0]);
    RUN(slots_of_every_kind_resolved);
    RUN(slots_of_every_kind_unresolved);
    RUN(objects_opened_later_take_part);
    RUN(another_tools_slots_are_left_alone);
    RUN(samples_end_when_another_tool_covers);
    RUN(slots_are_taken_when_a_tool_leaves_that_was_there_first);
    RUN(objects_that_stay_writable_wait);
    return end_tests();
}
