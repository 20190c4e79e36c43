"""Loads 300 MB at once and idles: `known_load.py SEED`."""

import random
import sys
import time

import known

random.seed(int(sys.argv[1]))
MIB = 1 << 20
scales = (100, 200, 400, 900, 2_000, 8_000, 30_000, 200_000)
sites = [known.Site(n, 32 * MIB, scale) for n, scale in enumerate(scales)]
sites += [known.Site(8 + n, MIB, random.choice((60, 300, 4_000, 60_000))) for n in range(44)]
for site in sites:
    site.run()
time.sleep(3)
known.report(sites)
