"""Blocks of 40 B to 64 MB, at least 32 MB at each site, half of them freed at once: `known_mixed.py SEED`."""

import random
import sys

import known

random.seed(int(sys.argv[1]))
sites = [known.Site(n, 32_000_000, 4**power // 2, 2) for n, power in enumerate(range(3, 14))]
left = list(sites)
while left:
    site = random.choice(left)
    if not site.run_next():
        left.remove(site)
known.report(sites)
