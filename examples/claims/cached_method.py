"""Claim: lru_cache(maxsize=...) has a bound, so it cannot leak."""

import functools
import gc
import weakref

from figures import conclude, show


class Session:
    def __init__(self):
        self.data = bytearray(1_000_000)

    @functools.lru_cache(maxsize=128)
    def permissions(self, scope):
        return len(scope)


alive = weakref.WeakSet()
for _ in range(100):
    session = Session()
    session.permissions("read")
    alive.add(session)
del session
gc.collect()
count = len(alive)
show("100 sessions were used and dropped; still alive", f"{count}")
Session.permissions.cache_clear()
show("after cache_clear(), still alive", f"{len(alive)}")
conclude(count == 100 and not alive, "a cached method keeps `self` of each of its entries alive")
