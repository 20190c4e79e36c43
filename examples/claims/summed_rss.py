"""Claim: the memory of a service is the sum of the RSS of its processes."""

import os

from figures import MIB, conclude, mib, show, smaps

data = bytearray(os.urandom(1) * (200 * MIB))
workers = []
for _ in range(4):
    down, up = os.pipe(), os.pipe()
    pid = os.fork()
    if pid == 0:
        data[0] + sum(data[:: 4096])  # reads each page, writes none
        os.write(up[1], b"%d %d" % (smaps("Rss"), 0))
        os.read(down[0], 1)  # all workers run while PSS is read
        os.write(up[1], b"%d" % smaps("Pss"))
        os.read(down[0], 1)
        os._exit(0)
    workers.append((pid, down[1], up[0]))

resident = [int(os.read(up, 100).split()[0]) for _, _, up in workers]
for _, down, _ in workers:
    os.write(down, b"x")
shares = [int(os.read(up, 100)) for _, _, up in workers]
total_rss = sum(resident) + smaps("Rss")
total_pss = sum(shares) + smaps("Pss")
for pid, down, _ in workers:
    os.write(down, b"x")
    os.waitpid(pid, 0)

show("a block of 200 MiB in the parent, read by 4 workers: sum of RSS", mib(total_rss))
show("sum of PSS", mib(total_pss))
conclude(
    total_rss > 950 * MIB and total_pss < 320 * MIB,
    "RSS counts shared memory once for each process, PSS counts it once",
)
