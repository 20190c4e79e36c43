"""Allocates at 10,000 sites, ten of which hold 32 MB each: `known_many.py SEED`."""

import random
import sys

import known

random.seed(int(sys.argv[1]))
sites = [
    known.Site(n, 32_000_000 if n < 10 else 15_000, random.choice((60, 300, 1_500)), 1 + n % 2) for n in range(10_000)
]
random.shuffle(sites)
for site in sites:
    site.run()
known.report(sites)
