/* site.h - the figures of each allocation site (site.c). All (locked). */
#ifndef TIDEMARK_SITE_H
#define TIDEMARK_SITE_H

#include <stdint.h>

#include "core/core.h"

uint32_t tm_find_site(uint32_t stack, uint32_t label, uint32_t thread, enum tm_domain domain, uint64_t now_ms);
struct tm_weight {
    double bytes, objects, variance;
};
struct tm_weight tm_weigh(uint64_t weight_bytes, uint64_t bytes, double period);
void tm_site_allocated(uint32_t site, struct tm_weight weight, uint64_t now_ms);
/* Changes the live figures. `samples`: -1, 0 or +1. */
void tm_site_live(uint32_t site, int samples, struct tm_weight minus, struct tm_weight plus);
void tm_site_ended(uint32_t site, struct tm_weight weight, uint64_t lifetime_ms);
void tm_check_peak(uint64_t now_ms);

#endif
