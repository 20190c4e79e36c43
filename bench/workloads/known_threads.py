"""32 threads that allocate at the same eight sites, 32 MB each in all: `known_threads.py SEED`."""

import random
import sys
import threading

import known

random.seed(int(sys.argv[1]))
THREADS = 32
kinds = ((60, 1), (60, 4), (300, 1), (300, 2), (1_500, 1), (10_000, 1), (60_000, 2), (60_000, 1))
sites = [known.Site(n, 32_000_000, scale, keep_every) for n, (scale, keep_every) in enumerate(kinds)]


def work(thread: int) -> None:
    for site in sites:
        for room in site.rooms[thread::THREADS]:
            site.function(site.plan, room)


threads = [threading.Thread(target=work, args=(n,)) for n in range(THREADS)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
for site in sites:
    site.runs = len(site.rooms)
known.report(sites)
