/* system.c - time, identity, small files, text and the log, without allocation and without locks of libc. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "core/lock.h"
#include "core/measure.h"
#include "core/state.h"
#include "core/system.h"

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    enum tm_part part = tm_part(TM_PART_CLOCK);
    int failed = clock_gettime(clock, &now) != 0;
    tm_part(part);
    if (failed)
        return 0;
    return (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
}

uint64_t tm_now_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

uint64_t tm_now_ms(void)
{
    return tm_now_ns() / 1000000u;
}

uint64_t tm_realtime_ms(void)
{
    return clock_ns(CLOCK_REALTIME) / 1000000u;
}

uint64_t tm_process_cpu_ns(void)
{
    return clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

uint64_t tm_ticks(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#else
    return tm_now_ns();
#endif
}

uint32_t tm_own_pid(void)
{
    return (uint32_t)syscall(SYS_getpid);
}

uint32_t tm_own_tid(void)
{
    return (uint32_t)syscall(SYS_gettid);
}

size_t tm_read_file(const char *path, char *buffer, size_t capacity)
{
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        return 0;
    size_t length = 0;
    while (length < capacity) {
        ssize_t got = read(descriptor, buffer + length, capacity - length);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        length += (size_t)got;
    }
    close(descriptor);
    return length;
}

/* Field 22 of /proc/self/stat (proc(5)). Field 2 is the command in parentheses and may itself contain spaces
 * and parentheses, so count from the last one. */
uint64_t tm_start_ticks_of_process(void)
{
    char text[1024];
    size_t length = tm_read_file("/proc/self/stat", text, sizeof text - 1);
    text[length] = 0;
    const char *at = strrchr(text, ')');
    for (int field = 2; at && field < 22; field++)
        at = strchr(at + 1, ' ');
    uint64_t ticks = 0;
    for (at = at ? at + 1 : ""; *at >= '0' && *at <= '9'; at++)
        ticks = ticks * 10 + (uint64_t)(*at - '0');
    return ticks;
}

static size_t put_number(char *buffer, size_t capacity, uint64_t value, unsigned base)
{
    char digits[24];
    size_t count = 0, written = 0;
    do
        digits[count++] = "0123456789abcdef"[value % base];
    while ((value /= base) != 0);
    while (count && written < capacity)
        buffer[written++] = digits[--count];
    return written;
}

static size_t format_list(char *buffer, size_t capacity, const char *format, va_list list)
{
    size_t length = 0, room = capacity - 1;
    for (const char *at = format; *at && length < room; at++) {
        if (*at != '%') {
            buffer[length++] = *at;
            continue;
        }
        switch (*++at) {
        case 's': {
            const char *text = va_arg(list, const char *);
            while (*text && length < room)
                buffer[length++] = *text++;
            break;
        }
        case 'd': {
            int value = va_arg(list, int);
            if (value < 0)
                buffer[length++] = '-';
            length += put_number(buffer + length, room - length, (uint64_t)(value < 0 ? -(int64_t)value : value), 10);
            break;
        }
        case 'u':
            length += put_number(buffer + length, room - length, va_arg(list, unsigned), 10);
            break;
        case 'x':
            length += put_number(buffer + length, room - length, va_arg(list, unsigned), 16);
            break;
        case 'p':
            length += put_number(buffer + length, room - length, (uintptr_t)va_arg(list, void *), 16);
            break;
        default:
            buffer[length++] = *at;
        }
    }
    buffer[length] = 0;
    return length;
}

size_t tm_format(char *buffer, size_t capacity, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    size_t length = format_list(buffer, capacity, format, list);
    va_end(list);
    return length;
}

/* Before a segment exists, lines are kept in the settings; tm_segment_begin() copies them. */
void tm_log(const char *format, ...)
{
    char line[256];
    va_list list;
    va_start(list, format);
    size_t length = format_list(line, sizeof line - 1, format, list);
    va_end(list);
    line[length++] = '\n';
    int locked = !tm_lock_is_mine() && __atomic_load_n(&tm_core.phase, __ATOMIC_ACQUIRE) == TM_PHASE_ARMED;
    if (locked && !tm_lock())
        return;
    struct tm_segment_header *header = tm_core.header;
    char *log = header ? header->log : tm_settings.log;
    uint32_t used = header ? header->log_length : tm_settings.log_length;
    if (used <= TM_LOG_BYTES && length <= TM_LOG_BYTES - used) {
        memcpy(log + used, line, length);
        if (header)
            __atomic_store_n(&header->log_length, used + (uint32_t)length, __ATOMIC_RELEASE);
        else
            tm_settings.log_length = used + (uint32_t)length;
    }
    if (locked)
        tm_unlock();
}

void tm_set_limit(uint32_t limit_bits)
{
    __atomic_fetch_or(&tm_settings.limits, limit_bits, __ATOMIC_RELAXED);
    if (tm_core.header)
        __atomic_fetch_or(&tm_core.header->limits, limit_bits, __ATOMIC_RELAXED);
}

void *tm_real_mmap(void *address, size_t length, int protection, int flags, int descriptor, off_t offset)
{
    return (void *)syscall(SYS_mmap, address, length, protection, flags, descriptor, offset);
}

int tm_real_munmap(void *address, size_t length)
{
    return (int)syscall(SYS_munmap, address, length);
}

void *tm_real_mremap(void *address, size_t old_length, size_t new_length, int flags, void *new_address)
{
    return (void *)syscall(SYS_mremap, address, old_length, new_length, flags, new_address);
}
