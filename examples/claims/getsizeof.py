"""Claim: sys.getsizeof() returns how much memory an object takes."""

import sys
import tracemalloc

from figures import conclude, mib, show


def build():
    return {number: {"id": number, "items": [str(number)] * 5} for number in range(100_000)}


tracemalloc.start()
orders = build()
traced, _ = tracemalloc.get_traced_memory()
shallow = sys.getsizeof(orders)
del orders
freed = traced - tracemalloc.get_traced_memory()[0]
tracemalloc.stop()

show("sys.getsizeof(orders)", mib(shallow))
show("freed when orders is deleted", mib(freed))
show("ratio", f"{freed / shallow:.1f}")
conclude(freed > 5 * shallow, "getsizeof() counts only the object itself, not what it refers to")
