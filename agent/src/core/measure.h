/* measure.h - where the time of a sample goes (measure.c).
 *
 * The timers exist only in the library that `npm run bench -- sample` builds, with TM_MEASURE; in every other build
 * these calls are nothing. For programs with one thread. */
#ifndef TIDEMARK_MEASURE_H
#define TIDEMARK_MEASURE_H

/* The stages of the slow path. */
enum tm_part {
    TM_PART_OUTSIDE = 0, /* nothing: the program, or its allocator */
    TM_PART_ENTRY,       /* whether this allocation is sampled, and the next gap */
    TM_PART_CHECKS,      /* loaded objects, Python's hooks, names in the method cache */
    TM_PART_STACK,       /* walking the frames */
    TM_PART_LOCK,
    TM_PART_INTERNING, /* ids of frames, stacks, labels and threads */
    TM_PART_TABLE,     /* the site and the live sample */
    TM_PART_CONTROL,   /* the period */
    TM_PART_CLOCK,
    TM_PART_COUNT
};

/* What has ended. */
enum tm_measured {
    TM_MEASURED_NOTHING = 0, /* it was not a sample after all */
    TM_MEASURED_SAMPLE,
    TM_MEASURED_END, /* of a sampled allocation */
};

#ifdef TM_MEASURE
/* From now on time belongs to `part`; returns the part before. */
enum tm_part tm_part(enum tm_part part);
void tm_measured(enum tm_measured what);
/* Writes the measurements to the file named by TIDEMARK_MEASURE, if any. */
void tm_measure_write(void);
#else
static inline enum tm_part tm_part(enum tm_part part)
{
    return part;
}
static inline void tm_measured(enum tm_measured what)
{
    (void)what;
}
static inline void tm_measure_write(void)
{
}
#endif

#endif
