"""Claim: MALLOC_ARENA_MAX=2 makes a threaded program smaller. Claim: jemalloc makes Python smaller."""

import glob
import os
import subprocess
import sys

from figures import conclude, mib, show

THREADS = """
import threading
from figures import rss
kept = []
ready, turn = threading.Barrier(8), threading.Lock()
def work():
    first = bytearray(3000)  # from here on, glibc has an arena for this thread
    ready.wait()
    with turn:  # one thread after the other
        blocks = [bytearray(3000) for _ in range(5000)]
        kept.append(blocks[-1])
        del blocks
    ready.wait()
threads = [threading.Thread(target=work) for _ in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(rss())
"""
SMALL = """
from figures import rss
rows = [bytes(300) for _ in range(400_000)]
kept = rows[::1000]
del rows
print(rss())
"""


def rss_of(program, **environment):
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=os.path.dirname(os.path.abspath(__file__)),
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        check=True,
    )
    return int(done.stdout)


plain = rss_of(THREADS)
limited = rss_of(THREADS, MALLOC_ARENA_MAX="2")
show("8 threads, one by one, allocate 15 MB, free nearly all: RSS", mib(plain))
show("the same with MALLOC_ARENA_MAX=2", mib(limited))
small = rss_of(SMALL)
show("400,000 small objects, of which 400 are kept: RSS", mib(small))
show("the same with MALLOC_ARENA_MAX=2", mib(rss_of(SMALL, MALLOC_ARENA_MAX="2")))

installed = glob.glob("/usr/lib/*/libjemalloc.so.2") + glob.glob("/usr/lib*/libjemalloc.so.2")
found = [os.environ["JEMALLOC"]] if "JEMALLOC" in os.environ else installed
jemalloc_small = None
if found:
    show("8 threads, with jemalloc", mib(rss_of(THREADS, LD_PRELOAD=found[0])))
    jemalloc_small = rss_of(SMALL, LD_PRELOAD=found[0])
    show("400,000 small objects, with jemalloc", mib(jemalloc_small))
else:
    show("libjemalloc.so.2 is not installed: not measured", "-")
conclude(
    limited < 0.6 * plain and (jemalloc_small is None or jemalloc_small > 0.8 * small),
    "fewer arenas help with malloc's memory, not with Python's own arenas",
)
