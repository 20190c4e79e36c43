/* segment.h - the memory that the agent shares with the recorder: its only description.
 *
 * Little-endian, x86-64. `src/segment/layout.ts` is generated from this header
 * (`npm run generate`), and a test fails when the two disagree. Any change here
 * raises TM_SEGMENT_VERSION; readers refuse other versions and name them.
 *
 * A POOL is one file (a sealed memfd made by tidemark-guard; or a file or memfd
 * made by the agent itself when the environment turned it on). It is sparse:
 *
 *   0          struct tm_pool_header                    one page
 *   4096       struct tm_pool_slot[slot_count]          the owner of each slot
 *   slots_offset + i * slot_stride                      slot i: one SEGMENT
 *
 * Each process image (a program after exec, a child after fork) claims one slot
 * and writes its own segment there; it maps the pool's head and its own slot only.
 *
 * A SEGMENT begins with struct tm_segment_header (one page); the header names its
 * sections. Sections only ever touch bytes that were reserved (fallocate) before,
 * so that a full device gives "no profile", never SIGBUS.
 *
 *   section     record              written                      record id
 *   strings     bytes               append only                  offset / 8
 *   frames      tm_frame            append only                  index
 *   stacks      tm_stack_node       append only, parent < self   index; 0 is the empty stack
 *   threads     tm_thread           append, name may change      index
 *   labels      tm_label            append only, parent < self   index; 0 is "no label"
 *   sites       tm_site             append, rewritten in place   index
 *   live        tm_live             hash table, rewritten        index; address 0 is empty
 *   events      tm_event            ring                         running number
 *   openings    tm_opening          rewritten in one store       descriptor
 *
 * READING without a lock. Append-only records with an id below `count` are final:
 * the writer stores the record, then `count` (release). A rewritten record carries
 * `sequence_begin` in its first and `sequence_end` in its last four bytes. The writer
 * stores sequence_end = n+1, then the body, then sequence_begin = n+1. A body is whole
 * when the sequence_begin of a read before it is the sequence_end of a read after it
 * (three reads: a single read copies its bytes in no guaranteed order); otherwise it is torn:
 * copy again, and after three tries count it as torn. After a kill at most one record per thread
 * stays torn permanently. `block_generation[i]` of a section counts changes to its
 * records [i * block_records, (i+1) * block_records): unchanged blocks need no copy.
 * When `layout_generation` of the header differs before and after a read, sections
 * were moved in the meantime: read again.
 *
 * TIMES are milliseconds of CLOCK_MONOTONIC unless named otherwise; the header
 * carries one pair (start_monotonic_ms, start_realtime_ms) to turn them into dates.
 */
#ifndef TIDEMARK_SEGMENT_H
#define TIDEMARK_SEGMENT_H

#include <stdint.h>

#define TM_POOL_MAGIC 0x4c4f4f504b524d54ull    /* "TMRKPOOL" */
#define TM_SEGMENT_MAGIC 0x544d47534b524d54ull /* "TMRKSGMT" */
#define TM_SEGMENT_VERSION 4u
#define TM_PAGE 4096u
#define TM_DEFAULT_SLOT_COUNT 1024u
#define TM_SLOT_STRIDE (16ull << 20) /* 16 MiB: the bound of one process's segment */
#define TM_DEFAULT_PERIOD (64ull << 10)
#define TM_NONE 0xffffffffu

/* ---- pool ------------------------------------------------------------------ */

struct tm_pool_header {
    uint64_t magic;
    uint32_t version;
    uint32_t slot_count;
    uint64_t slots_offset; /* multiple of TM_PAGE */
    uint64_t slot_stride;
    uint64_t run_id;       /* random; names this run in the log and in a recording */
    uint64_t period_bytes; /* the sampling period every process starts with */
    uint32_t options;      /* TM_OPTION_* */
    uint32_t keeper_pid;   /* guard: /proc/<keeper_pid>/fd/<keeper_fd> opens the pool again; 0: none */
    uint32_t keeper_fd;
    uint32_t reserved;
    /* Written by the recorder at every poll. If it is not 0 and is in the past, every agent of the pool disarms
     * itself. 0: no lease (the agent stays on). */
    volatile uint64_t lease_until_ms;
    /* Agents add to these (atomic). */
    volatile uint32_t claims;          /* slots ever claimed */
    volatile uint32_t unserved;        /* processes that found no slot or no memory */
    volatile uint32_t unserved_reason; /* errno of the last one */
    uint32_t reserved2;
};

#define TM_OPTION_NATIVE 1u    /* native frames too */
#define TM_OPTION_NO_FOLLOW 2u /* only the first process; children stay inert */
#define TM_OPTION_COPIES 4u    /* bytes that memcpy and memmove copy too */

enum tm_slot_state {
    TM_SLOT_FREE = 0,    /* never used, or drained by the recorder after the owner's end */
    TM_SLOT_CLAIMED = 1, /* owner is alive, or has ended and is not drained yet */
};

struct tm_pool_slot {
    volatile uint32_t state; /* FREE -> CLAIMED by the owner (compare and swap); back by the recorder (plain) */
    uint32_t pid;            /* in the owner's pid namespace */
    uint64_t process_start_ticks; /* field 22 of /proc/PID/stat, which distinguishes a reused pid */
    uint64_t claimed_ms;
    uint32_t image;          /* 1, 2, ... : exec count within this pid, as far as the agent knows */
    uint32_t reserved;
};

/* ---- segment --------------------------------------------------------------- */

enum tm_section_kind {
    TM_SECTION_STRINGS = 0,
    TM_SECTION_FRAMES,
    TM_SECTION_STACKS,
    TM_SECTION_THREADS,
    TM_SECTION_LABELS,
    TM_SECTION_SITES,
    TM_SECTION_LIVE,
    TM_SECTION_EVENTS,
    TM_SECTION_OPENINGS,
    TM_SECTION_COUNT
};

#define TM_SECTION_BLOCKS 64u

struct tm_section {
    uint64_t offset;        /* from the segment's start */
    uint32_t stride;        /* bytes per record; 1 for strings */
    uint32_t capacity;      /* records that the section may hold as laid out now */
    volatile uint32_t count; /* records written (strings: bytes; live: occupied entries; events: ever written) */
    uint32_t block_records; /* records that one entry of block_generation covers */
    volatile uint32_t lost; /* records refused because the section's final bound was reached */
    uint32_t reserved;
    volatile uint32_t block_generation[TM_SECTION_BLOCKS];
};

enum tm_segment_state {
    TM_STATE_EMPTY = 0,
    TM_STATE_ARMED = 1,
    TM_STATE_DISARMED = 2, /* lease lapsed, stopped on request, or turned itself off: see log */
    TM_STATE_ENDED = 3,    /* exit handlers ran, or exec is about to replace the image */
};

enum tm_python_state {
    TM_PYTHON_NONE = 0,           /* no interpreter seen (yet) */
    TM_PYTHON_FULL = 1,           /* frames and small objects */
    TM_PYTHON_FRAMES_ONLY = 2,    /* frames; small objects unseen (debug allocator, foreign wrapper: see limits) */
    TM_PYTHON_MALLOC = 3,         /* frames; PYTHONMALLOC=malloc: every object reaches malloc */
    TM_PYTHON_REFUSED = 4,        /* interpreter of unknown version, layout or build: native sampling only */
};

/* What this process's profile cannot show. src/segment turns each bit into a sentence. */
#define TM_LIMIT_DEBUG_ALLOCATOR (1u << 0)   /* small Python objects under a debug allocator: arenas only */
#define TM_LIMIT_UNKNOWN_PYTHON (1u << 1)    /* python_version has no layout table */
#define TM_LIMIT_FREE_THREADED (1u << 2)     /* free-threaded build */
#define TM_LIMIT_LAYOUT_MISMATCH (1u << 3)   /* a self-check of the layout failed */
#define TM_LIMIT_SITES_FULL (1u << 4)        /* new sites went to "other" */
#define TM_LIMIT_STACKS_FULL (1u << 5)
#define TM_LIMIT_STRINGS_FULL (1u << 6)
#define TM_LIMIT_NO_MEMORY (1u << 7)         /* reserving memory failed; recording stopped there */
#define TM_LIMIT_FOREIGN_ALLOCATOR (1u << 8) /* malloc belongs to another allocator, whose operator new is not seen */
#define TM_LIMIT_TURNED_OFF (1u << 10)       /* the agent turned itself off: see log */
#define TM_LIMIT_HOOKS_REPLACED (1u << 11)   /* another tool replaced the Python hooks and they were not set again */
#define TM_LIMIT_MALLOC_UNSEEN (1u << 12)    /* an allocator that precedes ours serves malloc: mappings only */
#define TM_LIMIT_COVERED (1u << 13)          /* another tool wrapped the allocators: nothing was sampled while it did */

#define TM_LOG_BYTES 704u
#define TM_COMMAND_BYTES 512u

struct tm_segment_header {
    uint64_t magic;
    uint32_t version;
    volatile uint32_t state;             /* enum tm_segment_state */
    volatile uint32_t layout_generation; /* odd while sections move */
    uint32_t pid;
    uint32_t parent_pid;
    uint32_t image;
    uint64_t process_start_ticks;
    uint64_t start_monotonic_ms;
    uint64_t start_realtime_ms;
    volatile uint64_t heartbeat_ms; /* time of the last change */

    /* sampling */
    uint64_t configured_period_bytes;
    volatile uint64_t period_bytes; /* currently in force */
    volatile uint64_t samples;      /* ever taken */
    volatile uint64_t samples_lost; /* taken but not recorded, because some section was full */
    volatile uint64_t frees_seen;   /* sampled allocations that ended */
    volatile uint64_t thinnings;    /* how often the live table was thinned */
    volatile uint64_t slow_path_ns; /* time spent on the slow path, all threads */
    volatile uint64_t process_cpu_ns; /* the process's CPU time when it was last read */

    /* sums of the sites, updated as they change (estimates; see tm_site) */
    volatile double live_bytes;
    volatile double live_objects;
    volatile double allocated_bytes;
    volatile double allocated_objects;
    /* The highest live_bytes seen, noted at each new high by 2 %; `peak_number` counts them. A site's
     * peak figures hold where its own peak_number equals this one. Otherwise the site's live figures have
     * not changed since the peak, and are its figures at the peak. */
    volatile double peak_live_bytes;
    volatile uint64_t peak_ms;
    volatile uint32_t peak_number;

    /* interpreter */
    volatile uint32_t python_state; /* enum tm_python_state */
    char python_version[32];        /* "3.11.7", NUL-terminated; empty when none */
    volatile uint32_t limits;       /* TM_LIMIT_* */
    uint32_t options;               /* TM_OPTION_* in force */

    char command[TM_COMMAND_BYTES]; /* start of /proc/self/cmdline, NUL between arguments */
    volatile uint32_t command_length;
    volatile uint32_t log_length;
    char log[TM_LOG_BYTES];         /* lines for users: why something was left out */

    struct tm_section sections[TM_SECTION_COUNT];

    /* The newest allocation that failed, and the process's own limits then. Small native ones are not seen. */
    volatile uint64_t failed_bytes;               /* 0: none has failed */
    volatile uint64_t failed_ms;
    volatile uint64_t failed_address_space_limit; /* RLIMIT_AS in bytes; 0: none */
    volatile uint64_t failed_data_limit;          /* RLIMIT_DATA in bytes; 0: none */
};

/* string: uint32_t length, then the bytes (UTF-8, no NUL), padded to 8. Id 0 is "". */

enum tm_frame_kind {
    TM_FRAME_PYTHON = 0,
    TM_FRAME_NATIVE = 1,  /* address is a virtual address of the object file `file`; symbols are read outside */
    TM_FRAME_MARK = 2,    /* "N frames left out", "other sites": the text is in `function` */
};

struct tm_frame {
    uint32_t function; /* string id: qualified name where the version has one; "" for native */
    uint32_t file;     /* string id: co_filename, or the path of the mapped object */
    uint32_t line;     /* 1-based; 0 unknown */
    uint32_t kind;     /* enum tm_frame_kind */
    uint64_t address;  /* native: virtual address within the object (load bias subtracted) of the call; python: 0 */
    uint32_t first_line; /* python: of the function */
    uint32_t reserved;
};

/* A stack is its leaf's node; following `parent` leads to the root (node 0). */
struct tm_stack_node {
    uint32_t parent;
    uint32_t frame;
};

struct tm_thread {
    uint32_t sequence_begin;
    uint32_t tid;      /* 0: "other threads", all threads beyond the limit */
    char name[24];     /* as /proc/PID/task/TID/comm showed it at the thread's last sample */
    uint32_t is_main;
    uint32_t sequence_end;
};

struct tm_label {
    uint32_t parent; /* label it extends; 0: none */
    uint32_t key;    /* string ids */
    uint32_t value;
    uint32_t reserved;
};

enum tm_domain {
    TM_DOMAIN_PYTHON = 0, /* requested through PyMem_ or PyObject_ (any size) */
    TM_DOMAIN_NATIVE = 1, /* malloc family, operator new */
    TM_DOMAIN_MAPPED = 2, /* anonymous mmap */
    TM_DOMAIN_FILES = 3,  /* mmap of a file, of shared memory or of a device: address space, not part of live bytes */
    TM_DOMAIN_COPIES = 4, /* not an allocation: memcpy and memmove; only the allocated figures are used */
    TM_DOMAIN_COUNT = 5,
};

#define TM_LIFETIME_BUCKETS 24u

/* Copies are sampled like allocations, at a period of their own that never changes: a copy of s bytes is in with
 * p = 1 - exp(-s/period). Copies of fewer bytes than TM_LEAST_COPY are not counted. */
#define TM_COPY_PERIOD (1ull << 20)
#define TM_LEAST_COPY 256u

/* One site: the allocations of one (stack, thread, label, domain). Figures are sums
 * over samples; a sample of an allocation of s bytes taken at period P entered with
 * probability p = 1 - exp(-s/P) and counts 1/p objects and s/p bytes. The variance of
 * a sum of bytes is estimated by the sum of (1-p)/p^2 * s^2 (Horvitz-Thompson). */
struct tm_site {
    volatile uint32_t sequence_begin;
    uint32_t stack;
    uint32_t label;
    uint16_t thread;
    uint16_t domain;
    uint32_t live_samples;
    uint32_t peak_number; /* see header */
    double live_bytes;
    double live_objects;
    double live_variance; /* bytes^2 */
    double allocated_bytes;
    double allocated_objects;
    double allocated_variance; /* bytes^2 */
    double peak_bytes;
    double peak_objects;
    double peak_variance; /* bytes^2 */
    uint64_t allocated_samples;
    uint64_t first_ms;
    uint64_t last_ms; /* of the last allocation sampled */
    /* Objects (estimated) that ended, by lifetime: bucket 0 under 1 ms, bucket i
     * from 2^(i-1) to 2^i ms, the last one open. */
    float lifetimes[TM_LIFETIME_BUCKETS];
    double freed_bytes;
    uint8_t reserved[24];
    uint32_t reserved2;
    volatile uint32_t sequence_end;
};

/* One live sampled allocation. */
struct tm_live {
    volatile uint32_t sequence_begin;
    uint32_t site;
    uint64_t address; /* 0: empty */
    uint64_t bytes;   /* as requested; for a mapping, what is still mapped */
    uint64_t birth_ms;
    uint64_t weight_bytes; /* size that decided p: equal to bytes except for a partly unmapped mapping */
    float period_bytes;    /* in force when the sample was taken or last thinned */
    volatile uint32_t sequence_end;
};

enum tm_event_kind {
    TM_EVENT_STEP_BEGIN = 1, /* label: the step's label; value: its number */
    TM_EVENT_STEP_END = 2,
    TM_EVENT_PERIOD = 3,     /* value: new period */
    TM_EVENT_OFF = 4,        /* turned itself off; see log */
};

struct tm_event {
    volatile uint32_t sequence_begin;
    uint32_t kind;
    uint64_t ms;
    uint64_t value;
    uint32_t label;
    volatile uint32_t sequence_end;
};

/* Which stack opened this descriptor, and when it was last opened. Its closing is not recorded: /proc/PID/fd
 * lists what is open. Eight bytes, written at once. */
struct tm_opening {
    uint32_t stack;   /* 0: unknown */
    uint32_t after_s; /* whole seconds after start_monotonic_ms */
};

_Static_assert(sizeof(struct tm_pool_header) <= TM_PAGE, "pool header is one page");
_Static_assert(sizeof(struct tm_pool_slot) == 32, "slot entry");
_Static_assert(sizeof(struct tm_segment_header) <= TM_PAGE, "segment header is one page");
_Static_assert(sizeof(struct tm_frame) == 32, "frame");
_Static_assert(sizeof(struct tm_thread) == 40, "thread");
_Static_assert(sizeof(struct tm_site) == 256, "site");
_Static_assert(sizeof(struct tm_live) == 48, "live");
_Static_assert(sizeof(struct tm_event) == 32, "event");
_Static_assert(sizeof(struct tm_opening) == 8, "opening");

#endif
