"""tracemalloc starts and stops while the program runs; its figures stay correct."""

import os
import sys
import tracemalloc

before = [bytes(100) for _ in range(50_000)]
tracemalloc.start()
during = [bytes(100) for _ in range(50_000)]
size = sum(statistic.size for statistic in tracemalloc.take_snapshot().statistics("lineno")
           if statistic.traceback[0].lineno == 9)
tracemalloc.stop()
after = [bytes(100) for _ in range(50_000)]
print(size)
sys.stdout.flush()
os._exit(0)
