"""Churns 1 GB a second next to two leaks of 1 MB a second, for SECONDS: `known_churn.py SEED SECONDS`.

One leak uses sizes that the churn does not use, the other uses sizes that it does."""

import random
import sys
import time

import known

seed, seconds = int(sys.argv[1]), float(sys.argv[2])
random.seed(seed)
LEAKED_A_SECOND = 1_000_000


def temporaries(sizes: list[int]) -> None:
    for size in sizes:
        bytes(size)


churned = [random.choice((random.randrange(40, 500), random.randrange(1_000, 30_000))) for _ in range(2_600)]
round_s = sum(churned) / 1e9
leaks = [known.Site(0, int(seconds * LEAKED_A_SECOND), 700), known.Site(1, int(seconds * LEAKED_A_SECOND), 250)]
begun = time.monotonic()
rounds = int(seconds / round_s)
for number in range(rounds):
    temporaries(churned)
    for leak in leaks:
        if leak.runs < len(leak.rooms) * number / rounds:
            leak.run_next()
    time.sleep(max(0.0, begun + (number + 1) * round_s - time.monotonic()))
known.report(leaks)
