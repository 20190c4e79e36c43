/* state.h - all state of the sampling core, and who may access it.
 *
 *   tm_core      one process image; on MADV_WIPEONFORK pages: a forked child, however
 *                it was created, finds zeros, which reads as "no segment yet". What belongs to
 *                one recording is zeroed when that ends (lifecycle/attach.c); the rest stays. Fields
 *                below `pid` belong to the lock's holder, unless they are marked (atomic).
 *   tm_settings  what the environment asked for and where the pool is: inherited.
 *
 * Lock order: the core lock is a leaf. Nothing that could block on another lock (libc's
 * loader lists, the allocator, the GIL) is called while it is held, so it can be taken
 * inside any of them. Waiting for it is bounded: a thread that was killed or that left
 * a signal handler by siglongjmp() while holding it must not stop the program.
 */
#ifndef TIDEMARK_STATE_H
#define TIDEMARK_STATE_H

#include "core/core.h"

/* ---- bounds (segment: 11.8 MiB when every section is full; private: 4.9 MiB) ----- */

#define TM_STRING_BYTES (2u << 20)
#define TM_FRAME_COUNT 32768u
#define TM_STACK_COUNT 131072u
#define TM_THREAD_COUNT 512u
#define TM_LABEL_COUNT 4096u
#define TM_SITE_COUNT 16384u
#define TM_LIVE_COUNT 65536u /* a slot number fits 16 bits of an index entry */
#define TM_EVENT_COUNT 1024u
#define TM_OPENING_COUNT 65536u

#define TM_FILTER_SLOTS (512u << 10)
#define TM_FRAGMENT_COUNT 4096u
#define TM_PENDING_COUNT 64u
#define TM_OBJECT_COUNT 1024u
#define TM_NATIVE_CACHE 4096u

/* The countdown of a thread on the slow path: no allocation is that large. */
#define TM_HELD (1ull << 62)
/* Bytes that a thread allocates between two checks whether the agent was armed. They are not seen if it was
 * armed in between, so they are at most what one sample usually represents. */
#define TM_IDLE TM_DEFAULT_PERIOD

enum tm_phase {
    TM_PHASE_UNBORN = 0, /* a fresh image, or a forked child before its first sample */
    TM_PHASE_CLAIMING = 1,
    TM_PHASE_ARMED = 2,
    TM_PHASE_OFF = 3,
};

#define TM_SIZES 64
#define TM_KINDS 1024
#define TM_SHIFTS 5
/* Samples of one size class, or of one size class and the functions that allocated them: how many are still live
 * (period/churn.c). */
struct tm_kind {
    uint32_t taken, ended; /* (locked) recent samples */
    uint32_t shift;        /* (atomic) log2 of how much coarser the period of this kind is; TM_SHIFTS: as its size */
};

/* A section as this process trusts it; the copy in the segment is only for readers. */
struct tm_room {
    uint32_t stride;
    uint32_t count;    /* records written (live: slots in use or on the free list) */
    uint32_t capacity; /* records that reserved memory holds */
    uint32_t maximum;
    uint32_t block_shift; /* log2 of the records that one entry of block_generation covers */
    uint64_t offset;
};

/* Part of a sampled mapping that is still mapped. */
struct tm_fragment {
    uintptr_t start, end;
    uint32_t slot;
};

struct __attribute__((aligned(TM_PAGE))) tm_core {
    /* of the image: (atomic), except the addresses, which never change once they are set */
    uint32_t phase; /* enum tm_phase */
    uint32_t lock;  /* 0 free, 1 held, 2 held and waited for */
    const void *lock_owner;
    uint32_t lock_timeouts; /* in a row */
    uint32_t is_first;      /* this is the image into which the library was loaded, not a fork of it */
    uint32_t arming;        /* a thread is arming, disarming or rewriting slots */
    uint32_t unhooking;     /* recording has ended, but Python's hooks are still set */
    uint8_t *segment;
    struct tm_segment_header *header;

    /* of the recording: (atomic) */
    uint32_t incarnation; /* first field that the end of a recording zeroes */
    uint64_t period, configured_period;
    uint64_t large_period; /* of allocations of the configured period and more that are soon freed again */
    uint64_t coarsest;     /* the period of no size is coarser unless the budget requires it */
    uint32_t index_version; /* odd while the live index is being rearranged */
    uint32_t index_bits;    /* log2 of its size; 0: none yet */
    uint32_t fragment_count;
    uint64_t objects_checked_ms;
    uint64_t object_changes; /* as of the last check */
    uint64_t seed;
    uintptr_t pending[TM_PENDING_COUNT]; /* frees that could not wait for the lock */
    uint32_t pending_used;
    uint64_t openings_since_ms; /* start of the interval in which `openings` stacks were captured */
    uint32_t openings;
    int64_t openings_credit_ns;

    uint32_t pid;
    uint32_t options;
    uint32_t slot; /* of the pool */
    struct tm_room rooms[TM_SECTION_COUNT];
    uint64_t growth_failed_ms;
    uint64_t table_period; /* set by thinning: the controller does not go lower */

    uint32_t index_used;
    uint32_t live_count;
    uint32_t free_slot_count;
    uint32_t other_site[TM_DOMAIN_COUNT]; /* by domain; 0: none yet (stored plus 1) */

    /* controller */
    uint64_t slow_ticks;
    uint64_t beside_ticks; /* of openings, which have a share of their own */
    uint64_t large_ticks;  /* of large allocations, which also have a share of their own */
    uint64_t large_ns;     /* of large allocations, since the last check */
    int32_t slow_samples;  /* since the last check */
    uint64_t passed_bytes; /* (atomic) allocated since the last check, in steps of gaps */
    uint64_t thinned_samples; /* (atomic) samples discarded because of the coarser period of their kind */
    uint64_t ticks_start, ticks_start_ns;
    uint64_t cpu_ns, wall_ns, slow_ns_checked, check_at_ticks;
    int64_t credit_ns;
    int64_t large_credit_ns;
    double large_budget_ns, large_spent_ns; /* since their account was settled */
    int32_t large_samples;                  /* since then */
    int64_t start_ns;      /* (atomic) rest of what the start may cost beyond its share */
    int64_t start_debt_ns; /* (atomic) part of that which was used and is not paid back yet */
    double cost; /* ns per sample taken, smoothed; 0: unknown */
    double rate; /* bytes allocated per ns of the budget, smoothed; 0: unknown */

    /* how much stays live: TM_SIZES kinds by size alone, the rest by size and functions */
    struct tm_kind kinds[TM_KINDS];
    uint32_t kinds_of_shift[TM_SHIFTS + 1]; /* how many have each; those with 0 are not counted */
    uint32_t most_shift;                /* (atomic) over all kinds */
    double mix[TM_SHIFTS]; /* bytes that recent samples of kinds with each shift represent */

    /* of this recording so far, for the status: the segment updates its peak in steps of 2 % */
    double highest_live_bytes;
    uint64_t coarsest_period;
};

struct tm_pool_place {
    struct tm_pool_header *head; /* header and slots table, mapped shared; NULL: none */
    uint64_t head_bytes;
    int kept_descriptor; /* -1: none */
    uint64_t device, inode;
    char path[512]; /* opens the pool again; empty: only the kept descriptor can */
};

struct tm_settings {
    uint32_t enabled;  /* a new number each time the agent is enabled; 0: inert */
    int own_pool;  /* every image creates its own pool */
    int native;
    int copies;
    int fixed_period;  /* (atomic) was requested, whatever it costs: only a full table makes it coarser */
    int malloc_unseen; /* another allocator precedes ours */
    int attached;      /* armed late, by request: leaves no trace when it ends */
    uint32_t loaded_by; /* pid of the process into which the library was loaded */
    uint64_t period; /* 0: as the pool specifies */
    char directory[400];
    struct tm_pool_place pool;
    uint32_t incarnations; /* handed out so far, by this image and its ancestors */
    uint32_t python_state;
    char python_version[32];
    uint32_t limits;
    uint32_t log_length;
    char log[TM_LOG_BYTES];
};

extern struct tm_core tm_core __attribute__((visibility("hidden")));
extern struct tm_settings tm_settings __attribute__((visibility("hidden")));

#endif
