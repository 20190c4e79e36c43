"""A child allocates where its parent does not; both exit at once. The blocks are so large that each is sampled."""

import os
import sys


def in_child():
    return [bytes(100) for _ in range(20_000)], bytes(300_000_001)


def in_parent():
    return [bytes(100) for _ in range(20_000)], bytes(400_000_001)


child = os.fork()
kept = in_parent() if child else in_child()
if child:
    os.waitpid(child, 0)
    print(child)
    sys.stdout.flush()
os._exit(0)
