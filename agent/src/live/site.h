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
/* A new sample: allocated and live. */
void tm_site_sampled(uint32_t site, struct tm_weight weight, uint64_t now_ms);
/* A sampled copy: counted among the allocated figures of a site of TM_DOMAIN_COPIES. */
void tm_site_copied(uint32_t site, struct tm_weight weight, uint64_t now_ms);
/* A sample is no longer live: it was thinned out, or its block was freed. */
void tm_site_removed(uint32_t site, struct tm_weight weight);
void tm_site_freed(uint32_t site, struct tm_weight weight, uint64_t lifetime_ms);
/* The weight of a live sample changes. */
void tm_site_changed(uint32_t site, struct tm_weight before, struct tm_weight after);
/* The same for a block that has grown or shrunk: the difference was allocated or freed. */
void tm_site_grown(uint32_t site, struct tm_weight before, struct tm_weight after, uint64_t now_ms);
void tm_check_peak(uint64_t now_ms);

#endif
