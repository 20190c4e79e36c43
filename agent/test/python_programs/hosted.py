"""Run by a host: allocates small and large blocks for long enough to be found."""

import os
import sys
import time

end = time.monotonic() + 1
rounds = 0
while time.monotonic() < end:
    sum(len(bytes(size)) for size in range(0, 200_000, 1000))
    rounds += 1


def in_hosted():
    return [bytes(100) for _ in range(100_000)], bytes(300_000_001)


kept = in_hosted()
print(sys.getsizeof(b"") + 300_000_001)
sys.stdout.flush()
os._exit(0)
