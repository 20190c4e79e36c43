/* state.h - everything the sampling core remembers, and who may touch it.
 *
 *   tm_core      one process image; on MADV_WIPEONFORK pages: a forked child, however
 *                it was made, finds zeros, which reads as "no segment yet". What belongs to
 *                one recording is zeroed when that ends (attach.c); the rest stays. Fields
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

#include "churn.h"
#include "control.h"
#include "core.h"

/* ---- bounds (segment: 11.8 MiB when every section is full; private: 4.3 MiB) ----- */

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

/* Set while a thread is on the slow path: no allocation reaches it. */
#define TM_HELD (1ull << 62)
/* What a thread may allocate between two looks whether the agent came on: unseen, should it
 * come on in between, so no more than what one sample usually stands for. */
#define TM_IDLE TM_DEFAULT_PERIOD

enum tm_phase {
    TM_PHASE_UNBORN = 0, /* a fresh image, or a forked child before its first sample */
    TM_PHASE_CLAIMING = 1,
    TM_PHASE_ARMED = 2,
    TM_PHASE_OFF = 3,
};

/* A section as this process trusts it: the copy in the segment is for readers only. */
struct tm_room {
    uint32_t stride;
    uint32_t count;    /* records written (live: slots in use or on the free list) */
    uint32_t capacity; /* records that reserved memory holds */
    uint32_t maximum;
    uint64_t offset;
};

/* Part of a sampled mapping that is still mapped. */
struct tm_fragment {
    uintptr_t start, end;
    uint32_t slot;
};

struct __attribute__((aligned(TM_PAGE))) tm_core {
    /* of the image: (atomic), but for the addresses, which never change once they are set */
    uint32_t phase; /* enum tm_phase */
    uint32_t lock;  /* 0 free, 1 held, 2 held and waited for */
    const void *lock_owner;
    uint32_t lock_timeouts; /* in a row */
    uint32_t is_first;      /* the image that the library was loaded into, not a fork of it */
    uint32_t arming;        /* somebody arms, disarms or rewrites slots */
    uint32_t unhooking;     /* recording ended, Python's hooks still stand */
    uint8_t *segment;
    struct tm_segment_header *header;

    /* of the recording: (atomic) */
    uint32_t incarnation; /* first of what the recording's end zeroes */
    uint64_t period, configured_period;
    uint32_t index_version; /* odd while the live index is being rearranged */
    uint32_t index_bits;    /* log2 of its size; 0: none yet */
    uint32_t fragment_count;
    uint64_t objects_checked_ms;
    uint64_t object_changes; /* as of the last look */
    uint64_t seed;
    uintptr_t pending[TM_PENDING_COUNT]; /* frees that could not wait for the lock */
    uint32_t pending_used;
    uint64_t openings_since_ms; /* of the time in which `openings` stacks were taken */
    uint32_t openings;
    int64_t openings_credit_ns;

    uint32_t pid;
    uint32_t options;
    uint32_t slot; /* of the pool */
    struct tm_room rooms[TM_SECTION_COUNT];
    uint64_t growth_failed_ms;
    uint64_t table_period; /* the controller goes no lower: set by thinning */

    uint32_t index_used;
    uint32_t live_count;
    uint32_t free_slot_count;
    uint32_t other_site[TM_DOMAIN_COUNT]; /* by domain; 0: none yet (stored plus 1) */

    /* controller */
    uint64_t slow_ticks;
    uint64_t beside_ticks; /* of openings, which have a share of their own */
    int32_t slow_samples;  /* since the last check */
    uint64_t passed_bytes; /* (atomic) the same, in steps of gaps */
    uint64_t thinned_samples; /* (atomic) and those that were none for their size */
    uint64_t ticks_start, ticks_start_ns;
    uint64_t cpu_ns, wall_ns, slow_ns_checked, check_at_ticks;
    int64_t credit_ns;
    double cost; /* ns a sample, smoothed; 0: not known yet */
    double rate; /* bytes allocated a ns of the budget, smoothed; 0: not known yet */

    /* what stays, by size */
    struct tm_size sizes[TM_SIZES];
    uint32_t most_shift; /* of all sizes */
};

struct tm_pool_place {
    struct tm_pool_header *head; /* header and slots table, mapped shared; NULL: none */
    uint64_t head_bytes;
    int kept_descriptor; /* -1: none */
    uint64_t device, inode;
    char path[512]; /* opens the pool again; empty: only the kept descriptor does */
};

struct tm_settings {
    uint32_t enabled;  /* a new number each time; 0: inert */
    int own_pool;  /* every image makes its own */
    int native;
    int malloc_unseen; /* another allocator stands before ours */
    int attached;      /* came on late, by request: leaves without a trace */
    uint32_t loaded_by; /* the process that the library was loaded into */
    uint64_t period; /* 0: as the pool says */
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

/* ---- filter: may this address be a sample? ------------------------------------------ */

extern uint8_t tm_filter[TM_FILTER_SLOTS] __attribute__((visibility("hidden")));

/* Neighbours share a cache line, so a program's working set stays one of the filter's. */
static inline size_t tm_filter_slot(const void *address)
{
    return ((uintptr_t)address >> 4) & (TM_FILTER_SLOTS - 1);
}

static inline int tm_maybe_sampled(const void *address)
{
    return __atomic_load_n(&tm_filter[tm_filter_slot(address)], __ATOMIC_RELAXED) != 0;
}

/* ---- the agent's own floor: system calls without libc's detours (system.c) ----------- */

uint64_t tm_now_ms(void);
uint64_t tm_now_ns(void);
uint64_t tm_realtime_ms(void);
uint64_t tm_process_cpu_ns(void);
uint32_t tm_own_pid(void);
uint32_t tm_own_tid(void);
uint64_t tm_ticks(void);
uint64_t tm_start_ticks_of_process(void);
size_t tm_read_file(const char *path, char *buffer, size_t capacity);
/* Writes a printf-like subset (%s %d %u %x %p); always NUL-terminated; gives the length. */
size_t tm_format(char *buffer, size_t capacity, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* ---- number.c --------------------------------------------------------------------- */

uint64_t tm_random(struct tm_thread_state *thread);
double tm_random_unit(struct tm_thread_state *thread); /* in (0, 1] */
double tm_logarithm(double x);                         /* natural, x > 0 */
/* 1 - exp(-bytes / period): the chance that an allocation of `bytes` is sampled. */
double tm_chance(double bytes, double period);
/* Whole bytes of an exponential gap of mean `period`. */
uint64_t tm_draw(struct tm_thread_state *thread, uint64_t period);

/* ---- gap.c ------------------------------------------------------------------------ */

/* Draws the thread's next gap, of mean `period`. */
void tm_begin_gap(struct tm_thread_state *thread, uint64_t period);
/* Takes `bytes` off the gap. 1: it ends in them. */
int tm_gap_ends(struct tm_thread_state *thread, uint64_t bytes);
/* Between two steps of a gap: the period may have fallen. */
void tm_step_gap(struct tm_thread_state *thread);

/* ---- lock.c ----------------------------------------------------------------------- */

int tm_lock(void);       /* 0: not got in bounded time, or nothing is recorded (any more) */
int tm_lock_always(void); /* the same, recording or not */
int tm_try_lock(void);   /* 0: somebody holds it; never waits */
void tm_unlock(void);
int tm_lock_is_mine(void);

/* ---- pool.c ----------------------------------------------------------------------- */

int tm_pool_open_given(const char *path); /* 0 or an errno */
/* A file or memfd of this image's, or, where it was entered late, of its children's too. `options`:
 * TM_OPTION_*. 0 or an errno. */
int tm_pool_make_own(uint32_t options);
/* With NO_FOLLOW the run's first process alone is recorded, through all its images. */
int tm_pool_may_follow(void);
/* Finds a free slot and maps it; 0 or an errno. */
int tm_pool_claim(uint8_t **segment, uint32_t *image);
/* Makes [offset, offset + bytes) of this segment safe to write; 0 or an errno. */
int tm_pool_reserve(uint64_t offset, uint64_t bytes);
void tm_pool_unserved(int reason);
/* Puts private memory where the pool was: its addresses stay good, its bytes are given back. */
void tm_pool_let_go(void);

/* ---- segment.c -------------------------------------------------------------------- */

int tm_segment_begin(uint8_t *segment, uint32_t image); /* 0 or an errno */
/* (locked) Room for record `index`; 0: the section is at its bound, or memory is. */
int tm_room_for(enum tm_section_kind kind, uint32_t index);
void tm_record_changed(enum tm_section_kind kind, uint32_t index);
/* (locked) Publishes records up to `count` of an append-only section. */
void tm_records_appended(enum tm_section_kind kind, uint32_t count);
void tm_section_lost(enum tm_section_kind kind, uint32_t limit);
void tm_heartbeat(uint64_t now_ms);

static inline void *tm_at(enum tm_section_kind kind, uint32_t index)
{
    const struct tm_room *room = &tm_core.rooms[kind];
    return tm_core.segment + room->offset + (uint64_t)index * room->stride;
}

/* Opens and closes a rewritten record (segment.h tells the order and why). */
static inline void tm_open(volatile uint32_t *begin, volatile uint32_t *end)
{
    *end = *begin + 1;
    __atomic_signal_fence(__ATOMIC_SEQ_CST); /* x86 keeps the order of stores */
}

static inline void tm_close(volatile uint32_t *begin, volatile uint32_t *end)
{
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    *begin = *end;
}

/* ---- intern.c (locked) ------------------------------------------------------------ */

uint32_t tm_intern_native_frame(uint32_t file, uint64_t address);
uint32_t tm_intern_stack(uint32_t parent, uint32_t frame); /* the parent's id when full */
uint32_t tm_intern_label(uint32_t parent, uint32_t key, uint32_t value);
uint32_t tm_own_thread_index(void);

/* ---- site.c (locked) -------------------------------------------------------------- */

uint32_t tm_find_site(uint32_t stack, uint32_t label, uint32_t thread, enum tm_domain domain, uint64_t now_ms);
struct tm_weight {
    double bytes, objects, variance;
};
struct tm_weight tm_weigh(uint64_t weight_bytes, uint64_t bytes, double period);
void tm_site_allocated(uint32_t site, struct tm_weight weight, uint64_t now_ms);
/* Changes of live figures: samples -1, 0 or +1. */
void tm_site_live(uint32_t site, int samples, struct tm_weight minus, struct tm_weight plus);
void tm_site_ended(uint32_t site, struct tm_weight weight, uint64_t lifetime_ms);
void tm_check_peak(uint64_t now_ms);

/* ---- live.c ----------------------------------------------------------------------- */

/* Lock-free: the slot of an address; TM_NONE: no live sample; TM_LIVE_COUNT: it could not be told. */
uint32_t tm_live_slot(const void *address);
int tm_is_sampled(const void *address);
/* (locked) A slot for a new sample, TM_NONE when none can be had. */
uint32_t tm_live_insert(const void *address, size_t bytes, double period, uint32_t site, int indexed, uint64_t now_ms);
/* (locked) Takes the sample at an address out; its record as it was goes to `taken`. */
int tm_live_take(const void *address, struct tm_live *taken);
void tm_live_end(const struct tm_live *taken, uint64_t now_ms);
void tm_live_restore(const struct tm_live *taken);
/* (locked) A mapping's sample: what is mapped of it now; 0 ends it. */
void tm_live_resize(uint32_t slot, uint64_t bytes, uint64_t now_ms);
void tm_drain_pending(void);
/* (locked) Raises the period and thins what lives to match. */
void tm_thin(void);
/* Not locked: a sampled address is about to be freed. */
void tm_sampled_free(const void *address);
/* Takes the sample out for a realloc that may fail. Not 0: `taken` holds it, of that recording. */
uint32_t tm_take_for_realloc(const void *address, struct tm_live *taken);
void tm_settle_realloc(const struct tm_live *taken, int moved, uint32_t recording);

/* ---- sample.c --------------------------------------------------------------------- */

void tm_set_period(uint64_t period); /* (locked) */
/* (locked) Tells readers the coarsest period of all sizes. */
void tm_publish_period(void);
/* Makes the thread's state this image's own; not locked. */
void tm_adopt_thread(void);

/* ---- ending.c --------------------------------------------------------------------- */

/* Non-zero while the interpreter is taken down: no sample is taken, ends are only marked. Not locked. */
int tm_quiet(void);
/* Lock-free: this sampled address is about to be freed. */
void tm_mark_ended(const void *address);

/* ---- loader.c ----------------------------------------------------------------------- */

/* Finds the lock of the loader's list; in the first image, once. */
void tm_loader_begin(void);
/* 0: the list of objects must not be asked for in this forked image, now or ever. Not locked. */
int tm_loader_answers(void);

/* ---- status.c ----------------------------------------------------------------------- */

/* One JSON document; gives its length. */
size_t tm_status(char *text, size_t capacity);

/* ---- attach.c ----------------------------------------------------------------------- */

/* At a sampling point of an attached program whose recorder went away: leaves. */
void tm_lease_lapsed(void);
/* At a sampling point that found nothing recording: what an earlier end had to leave standing. */
void tm_finish_leaving(void);
/* Brings the slots of loaded objects up to date; on the slow path, not locked. */
void tm_attach_look(int objects_changed);

/* Brings them up to date where another tool has written over them. */
void tm_write_slots_anew(void);

/* ---- covered.c -------------------------------------------------------------------- */

/* Comes on late: finds the slots that tell. */
void tm_cover_begin(void);
/* Non-zero while another tool's functions stand in the place of ours, so that nothing may be sampled. */
int tm_covered(void);
/* Where the interpreter might call malloc() or free() itself, and nobody's lock is held. */
void tm_look_for_cover(void);

/* ---- native.c --------------------------------------------------------------------- */

#define TM_NATIVE_FRAMES 128u
void tm_native_begin(int backtraces);
/* The native stack, leaf first, from the caller at `return_address` on. Not locked. */
unsigned tm_native_backtrace(void *pcs[TM_NATIVE_FRAMES], const void *return_address);
/* Brings the table of objects up to date. Not locked: takes the loader's lock, and ours inside. */
void tm_native_refresh(void);
/* (locked) */
int tm_native_knows(const void *pc);
uint32_t tm_native_intern(const void *pc);

/* ---- unwind.c --------------------------------------------------------------------- */

/* Loads and finds the unwinder, while that is still harmless. */
void tm_unwind_begin(void);
/* (locked) An object that a walk may come through. */
void tm_unwind_object(const struct tm_object *object);
/* Return addresses of this thread's frames, leaf first; gives their number. Not locked. */
unsigned tm_unwind(void *pcs[TM_NATIVE_FRAMES]);

/* ---- event.c (locked) ------------------------------------------------------------- */

void tm_event(enum tm_event_kind kind, uint32_t label, uint64_t value);

/* ---- start.c ---------------------------------------------------------------------- */

struct tm_options; /* options.h */

/* The steps of coming on, in this order; each 0 or an errno where it gives an int. */
int tm_open_pool(const struct tm_options *options);
void tm_note_other_allocators(void);
void tm_enable(int on);
int tm_begin_image(void); /* by one thread, in phase CLAIMING */
void tm_begin_sampling(void);
/* Forked children find this image's pages zeroed; 0: the kernel cannot. */
int tm_wipe_on_fork(void);
/* (locked, nothing recorded any more) Zeroes what belongs to one recording. */
void tm_forget_recording(void);

/* First sample of a forked child: claims a segment. 1: armed. */
int tm_come_alive(void);

#endif
