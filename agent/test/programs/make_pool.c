/* make_pool.c - an empty pool file: make_pool FILE SLOTS PERIOD OPTIONS */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "segment.h"

int main(int count, char **arguments)
{
    if (count != 5)
        return 2;
    struct tm_pool_header head = {
        .magic = TM_POOL_MAGIC,
        .version = TM_SEGMENT_VERSION,
        .slot_count = (uint32_t)atoi(arguments[2]),
        .slot_stride = TM_SLOT_STRIDE,
        .period_bytes = (uint64_t)atoll(arguments[3]),
        .options = (uint32_t)atoi(arguments[4]),
    };
    head.slots_offset = (TM_PAGE + head.slot_count * sizeof(struct tm_pool_slot) + TM_PAGE - 1) / TM_PAGE * TM_PAGE;
    int file = open(arguments[1], O_RDWR | O_CREAT | O_TRUNC, 0600);
    off_t size = (off_t)(head.slots_offset + head.slot_count * head.slot_stride);
    return file < 0 || ftruncate(file, size) != 0 || pwrite(file, &head, sizeof head, 0) != (ssize_t)sizeof head;
}
