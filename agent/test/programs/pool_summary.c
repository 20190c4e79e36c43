/* pool_summary.c - prints one line for each claimed slot of a pool file, for the checks in run.sh. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "segment.h"

int main(int count, char **arguments)
{
    struct stat status;
    int file = count == 2 ? open(arguments[1], O_RDONLY) : -1;
    if (file < 0 || fstat(file, &status) != 0)
        return 1;
    const char *pool = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_SHARED, file, 0);
    if (pool == MAP_FAILED)
        return 1;
    const struct tm_pool_header *head = (const void *)pool;
    printf("unserved=%u claims=%u\n", head->unserved, head->claims);
    for (uint32_t i = 0; i < head->slot_count; i++) {
        const struct tm_pool_slot *slot = (const void *)(pool + TM_PAGE + i * sizeof *slot);
        if (slot->state != TM_SLOT_CLAIMED)
            continue;
        const char *segment = pool + head->slots_offset + i * head->slot_stride;
        const struct tm_segment_header *header = (const void *)segment;
        const struct tm_section *sites = &header->sections[TM_SECTION_SITES];
        const struct tm_section *frames = &header->sections[TM_SECTION_FRAMES];
        unsigned torn = 0, native = 0;
        double live = 0;
        for (uint32_t k = 0; k < sites->count; k++) {
            const struct tm_site *site = (const void *)(segment + sites->offset + k * sizeof *site);
            torn += site->sequence_begin != site->sequence_end;
            live += site->live_bytes;
        }
        for (uint32_t k = 0; k < frames->count; k++)
            native += ((const struct tm_frame *)(const void *)(segment + frames->offset))[k].kind == TM_FRAME_NATIVE;
        printf("pid=%u image=%u state=%u samples=%llu lost=%llu live_mib=%.0f allocated_mib=%.0f sites=%u threads=%u "
               "native_frames=%u torn=%u limits=%u period=%llu slow_path_us=%llu cpu_ms=%llu log=%.*s\n",
               header->pid, header->image, header->state, (unsigned long long)header->samples,
               (unsigned long long)header->samples_lost, live / 1048576, header->allocated_bytes / 1048576,
               sites->count, header->sections[TM_SECTION_THREADS].count, native, torn, header->limits,
               (unsigned long long)header->period_bytes, (unsigned long long)header->slow_path_ns / 1000,
               (unsigned long long)header->process_cpu_ns / 1000000,
               (int)header->log_length, header->log);
    }
    return 0;
}
