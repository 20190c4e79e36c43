"""Six forked workers, each with four sites of 30 MB, which live at the same time: `known_forks.py SEED`."""

import os
import random
import signal
import sys
import time

import known

random.seed(int(sys.argv[1]))
WORKERS = 6
kinds = ((60, 1), (300, 3), (2_000, 1), (100_000, 2))
sites = [
    [known.Site(worker * 10 + n, 30_000_000, scale, keep_every) for n, (scale, keep_every) in enumerate(kinds)]
    for worker in range(WORKERS)
]
ready, says_ready = os.pipe()
workers = []
for own in sites:
    pid = os.fork()
    if pid == 0:
        for site in own:
            site.run()
        os.write(says_ready, b"r")
        signal.pause()
    workers.append(pid)
for _ in workers:
    os.read(ready, 1)
time.sleep(2)
for pid in workers:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
all_sites = [site for own in sites for site in own]
for site in all_sites:
    site.runs = len(site.rooms)
known.report(all_sites)
