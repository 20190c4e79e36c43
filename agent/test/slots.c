/* slots.c - the pointers that loaded objects hold: of every kind, lazy ones, later objects', other tools'. */
#include "late/objects.h"

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
int main(int count, char **arguments)
{
    (void)count;
    begin_late_tests(arguments[0]);
    RUN(slots_of_every_kind_resolved);
    RUN(slots_of_every_kind_unresolved);
    RUN(objects_opened_later_take_part);
    RUN(another_tools_slots_are_left_alone);
    return end_tests();
}
