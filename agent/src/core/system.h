/* system.h - time, identity, small files, text and the log, without allocation and without locks of libc (system.c). */
#ifndef TIDEMARK_SYSTEM_H
#define TIDEMARK_SYSTEM_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Monotonic clock. */
uint64_t tm_now_ms(void);
uint64_t tm_now_ns(void);
uint64_t tm_realtime_ms(void);
uint64_t tm_process_cpu_ns(void);
/* The processor's time stamp counter. */
uint64_t tm_ticks(void);

/* By system call: libc may cache both. */
uint32_t tm_own_pid(void);
uint32_t tm_own_tid(void);
uint64_t tm_start_ticks_of_process(void);

/* The system calls that our mmap family wraps: the agent's own mappings are not sampled. */
void *tm_real_mmap(void *address, size_t length, int protection, int flags, int descriptor, off_t offset);
int tm_real_munmap(void *address, size_t length);
void *tm_real_mremap(void *address, size_t old_length, size_t new_length, int flags, void *new_address);

/* Reads up to `capacity` bytes; returns the number read, 0 if the file cannot be opened. */
size_t tm_read_file(const char *path, char *buffer, size_t capacity);
/* Writes a printf-like subset (%s %d %u %x %p); always NUL-terminated; returns the length. */
size_t tm_format(char *buffer, size_t capacity, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Appends a line to the segment's log (the same subset as tm_format()). Takes the
 * core lock itself unless `tm_lock_is_mine()`. */
void tm_log(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Sets bits of TM_LIMIT_* permanently. */
void tm_set_limit(uint32_t limit_bits);

#endif
