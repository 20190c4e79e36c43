/* layout.c - prints segment.h as JSON, so the reader's tables are generated from this one description and never
 * typed twice.
 *
 *   {"structs":{"tm_site":{"size":256,"fields":{"stack":{"offset":4,"size":4,"type":"u32"},...}}},
 *    "constants":{"TM_SEGMENT_VERSION":1,...}}
 *
 * Array fields have "count" and the element's type. Integers above 2^53 are strings in hexadecimal. A member of
 * a struct that is missing in this list is an error: the fields must follow each other with only alignment
 * between them.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../include/segment.h"

#define TYPE_NAME(x)                                                                          \
    _Generic((x), uint8_t: "u8", uint16_t: "u16", uint32_t: "u32", uint64_t: "u64",           \
             float: "f32", double: "f64", char: "char", struct tm_section: "tm_section")

static size_t next_offset; /* where the struct's next member may begin */
static int fields_written;
static int structs_written;
static int constants_written;

static void begin_struct(const char *name, size_t size)
{
    printf("%s\"%s\":{\"size\":%zu,\"fields\":{", structs_written++ ? "," : "", name, size);
    next_offset = 0;
    fields_written = 0;
}

static void field(const char *owner, const char *name, size_t offset, size_t size, size_t alignment,
                  const char *type, size_t count)
{
    size_t expected = (next_offset + alignment - 1) / alignment * alignment;
    if (offset != expected) {
        fprintf(stderr, "layout: %s has a member before %s that this list does not name\n", owner, name);
        exit(1);
    }
    next_offset = offset + size;
    printf("%s\"%s\":{\"offset\":%zu,\"size\":%zu,\"type\":\"%s\"", fields_written++ ? "," : "", name, offset,
           size, type);
    if (count)
        printf(",\"count\":%zu", count);
    printf("}");
}

static void end_struct(const char *owner, size_t size, size_t alignment)
{
    if ((next_offset + alignment - 1) / alignment * alignment != size) {
        fprintf(stderr, "layout: %s ends with a member that this list does not name\n", owner);
        exit(1);
    }
    printf("}}");
}

static void constant(const char *name, unsigned long long value)
{
    printf(value >> 53 ? "%s\"%s\":\"0x%llx\"" : "%s\"%s\":%llu", constants_written++ ? "," : "", name, value);
}

#define BEGIN(s) begin_struct(#s, sizeof(struct s))
#define ONE(s, m)                                                                             \
    field(#s, #m, offsetof(struct s, m), sizeof(((struct s *)0)->m), _Alignof(__typeof__(((struct s *)0)->m)), \
          TYPE_NAME(((struct s *)0)->m), 0)
#define MANY(s, m)                                                                            \
    field(#s, #m, offsetof(struct s, m), sizeof(((struct s *)0)->m), _Alignof(__typeof__(((struct s *)0)->m[0])), \
          TYPE_NAME(((struct s *)0)->m[0]), sizeof(((struct s *)0)->m) / sizeof(((struct s *)0)->m[0]))
#define END(s) end_struct(#s, sizeof(struct s), _Alignof(struct s))
#define CONSTANT(name) constant(#name, (unsigned long long)(name))

static void print_pool(void)
{
    BEGIN(tm_pool_header);
    ONE(tm_pool_header, magic), ONE(tm_pool_header, version), ONE(tm_pool_header, slot_count);
    ONE(tm_pool_header, slots_offset), ONE(tm_pool_header, slot_stride), ONE(tm_pool_header, run_id);
    ONE(tm_pool_header, period_bytes), ONE(tm_pool_header, options), ONE(tm_pool_header, keeper_pid);
    ONE(tm_pool_header, keeper_fd), ONE(tm_pool_header, reserved), ONE(tm_pool_header, lease_until_ms);
    ONE(tm_pool_header, claims), ONE(tm_pool_header, unserved), ONE(tm_pool_header, unserved_reason);
    ONE(tm_pool_header, reserved2);
    END(tm_pool_header);

    BEGIN(tm_pool_slot);
    ONE(tm_pool_slot, state), ONE(tm_pool_slot, pid), ONE(tm_pool_slot, process_start_ticks);
    ONE(tm_pool_slot, claimed_ms), ONE(tm_pool_slot, image), ONE(tm_pool_slot, reserved);
    END(tm_pool_slot);
}

static void print_segment(void)
{
    BEGIN(tm_section);
    ONE(tm_section, offset), ONE(tm_section, stride), ONE(tm_section, capacity), ONE(tm_section, count);
    ONE(tm_section, block_records), ONE(tm_section, lost), ONE(tm_section, reserved);
    MANY(tm_section, block_generation);
    END(tm_section);

    BEGIN(tm_segment_header);
    ONE(tm_segment_header, magic), ONE(tm_segment_header, version), ONE(tm_segment_header, state);
    ONE(tm_segment_header, layout_generation), ONE(tm_segment_header, pid), ONE(tm_segment_header, parent_pid);
    ONE(tm_segment_header, image), ONE(tm_segment_header, process_start_ticks);
    ONE(tm_segment_header, start_monotonic_ms), ONE(tm_segment_header, start_realtime_ms);
    ONE(tm_segment_header, heartbeat_ms), ONE(tm_segment_header, configured_period_bytes);
    ONE(tm_segment_header, period_bytes), ONE(tm_segment_header, samples), ONE(tm_segment_header, samples_lost);
    ONE(tm_segment_header, frees_seen), ONE(tm_segment_header, thinnings), ONE(tm_segment_header, slow_path_ns);
    ONE(tm_segment_header, process_cpu_ns), ONE(tm_segment_header, live_bytes);
    ONE(tm_segment_header, live_objects), ONE(tm_segment_header, allocated_bytes);
    ONE(tm_segment_header, allocated_objects), ONE(tm_segment_header, peak_live_bytes);
    ONE(tm_segment_header, peak_ms), ONE(tm_segment_header, peak_number), ONE(tm_segment_header, python_state);
    MANY(tm_segment_header, python_version), ONE(tm_segment_header, limits), ONE(tm_segment_header, options);
    MANY(tm_segment_header, command), ONE(tm_segment_header, command_length), ONE(tm_segment_header, log_length);
    MANY(tm_segment_header, log), MANY(tm_segment_header, sections);
    ONE(tm_segment_header, failed_bytes), ONE(tm_segment_header, failed_ms);
    ONE(tm_segment_header, failed_address_space_limit), ONE(tm_segment_header, failed_data_limit);
    END(tm_segment_header);
}

static void print_records(void)
{
    BEGIN(tm_frame);
    ONE(tm_frame, function), ONE(tm_frame, file), ONE(tm_frame, line), ONE(tm_frame, kind);
    ONE(tm_frame, address), ONE(tm_frame, first_line), ONE(tm_frame, reserved);
    END(tm_frame);

    BEGIN(tm_stack_node);
    ONE(tm_stack_node, parent), ONE(tm_stack_node, frame);
    END(tm_stack_node);

    BEGIN(tm_thread);
    ONE(tm_thread, sequence_begin), ONE(tm_thread, tid), MANY(tm_thread, name), ONE(tm_thread, is_main);
    ONE(tm_thread, sequence_end);
    END(tm_thread);

    BEGIN(tm_label);
    ONE(tm_label, parent), ONE(tm_label, key), ONE(tm_label, value), ONE(tm_label, reserved);
    END(tm_label);

    BEGIN(tm_site);
    ONE(tm_site, sequence_begin), ONE(tm_site, stack), ONE(tm_site, label), ONE(tm_site, thread);
    ONE(tm_site, domain), ONE(tm_site, live_samples), ONE(tm_site, peak_number), ONE(tm_site, live_bytes);
    ONE(tm_site, live_objects), ONE(tm_site, live_variance), ONE(tm_site, allocated_bytes);
    ONE(tm_site, allocated_objects), ONE(tm_site, allocated_variance), ONE(tm_site, peak_bytes);
    ONE(tm_site, peak_objects), ONE(tm_site, peak_variance), ONE(tm_site, allocated_samples);
    ONE(tm_site, first_ms), ONE(tm_site, last_ms), MANY(tm_site, lifetimes), ONE(tm_site, freed_bytes);
    MANY(tm_site, reserved), ONE(tm_site, reserved2), ONE(tm_site, sequence_end);
    END(tm_site);

    BEGIN(tm_live);
    ONE(tm_live, sequence_begin), ONE(tm_live, site), ONE(tm_live, address), ONE(tm_live, bytes);
    ONE(tm_live, birth_ms), ONE(tm_live, weight_bytes), ONE(tm_live, period_bytes), ONE(tm_live, sequence_end);
    END(tm_live);

    BEGIN(tm_event);
    ONE(tm_event, sequence_begin), ONE(tm_event, kind), ONE(tm_event, ms), ONE(tm_event, value);
    ONE(tm_event, label), ONE(tm_event, sequence_end);
    END(tm_event);

    BEGIN(tm_opening);
    ONE(tm_opening, stack), ONE(tm_opening, after_s);
    END(tm_opening);
}

static void print_constants(void)
{
    CONSTANT(TM_POOL_MAGIC), CONSTANT(TM_SEGMENT_MAGIC), CONSTANT(TM_SEGMENT_VERSION), CONSTANT(TM_PAGE);
    CONSTANT(TM_DEFAULT_SLOT_COUNT), CONSTANT(TM_SLOT_STRIDE), CONSTANT(TM_DEFAULT_PERIOD), CONSTANT(TM_NONE);
    CONSTANT(TM_OPTION_NATIVE), CONSTANT(TM_OPTION_NO_FOLLOW), CONSTANT(TM_OPTION_COPIES);
    CONSTANT(TM_SLOT_FREE), CONSTANT(TM_SLOT_CLAIMED);
    CONSTANT(TM_SECTION_STRINGS), CONSTANT(TM_SECTION_FRAMES), CONSTANT(TM_SECTION_STACKS);
    CONSTANT(TM_SECTION_THREADS), CONSTANT(TM_SECTION_LABELS), CONSTANT(TM_SECTION_SITES);
    CONSTANT(TM_SECTION_LIVE), CONSTANT(TM_SECTION_EVENTS), CONSTANT(TM_SECTION_OPENINGS);
    CONSTANT(TM_SECTION_COUNT);
    CONSTANT(TM_SECTION_BLOCKS);
    CONSTANT(TM_STATE_EMPTY), CONSTANT(TM_STATE_ARMED), CONSTANT(TM_STATE_DISARMED), CONSTANT(TM_STATE_ENDED);
    CONSTANT(TM_PYTHON_NONE), CONSTANT(TM_PYTHON_FULL), CONSTANT(TM_PYTHON_FRAMES_ONLY);
    CONSTANT(TM_PYTHON_MALLOC), CONSTANT(TM_PYTHON_REFUSED);
    CONSTANT(TM_LIMIT_DEBUG_ALLOCATOR), CONSTANT(TM_LIMIT_UNKNOWN_PYTHON), CONSTANT(TM_LIMIT_FREE_THREADED);
    CONSTANT(TM_LIMIT_LAYOUT_MISMATCH), CONSTANT(TM_LIMIT_SITES_FULL), CONSTANT(TM_LIMIT_STACKS_FULL);
    CONSTANT(TM_LIMIT_STRINGS_FULL), CONSTANT(TM_LIMIT_NO_MEMORY), CONSTANT(TM_LIMIT_FOREIGN_ALLOCATOR);
    CONSTANT(TM_LIMIT_MALLOC_UNSEEN), CONSTANT(TM_LIMIT_COVERED);
    CONSTANT(TM_LIMIT_TURNED_OFF), CONSTANT(TM_LIMIT_HOOKS_REPLACED);
    CONSTANT(TM_LOG_BYTES), CONSTANT(TM_COMMAND_BYTES);
    CONSTANT(TM_FRAME_PYTHON), CONSTANT(TM_FRAME_NATIVE), CONSTANT(TM_FRAME_MARK);
    CONSTANT(TM_DOMAIN_PYTHON), CONSTANT(TM_DOMAIN_NATIVE), CONSTANT(TM_DOMAIN_MAPPED);
    CONSTANT(TM_DOMAIN_FILES), CONSTANT(TM_DOMAIN_COPIES), CONSTANT(TM_DOMAIN_COUNT);
    CONSTANT(TM_LIFETIME_BUCKETS);
    CONSTANT(TM_EVENT_STEP_BEGIN), CONSTANT(TM_EVENT_STEP_END), CONSTANT(TM_EVENT_PERIOD), CONSTANT(TM_EVENT_OFF);
}

int main(void)
{
    printf("{\"structs\":{");
    print_pool();
    print_segment();
    print_records();
    printf("},\"constants\":{");
    print_constants();
    printf("}}\n");
    return 0;
}
