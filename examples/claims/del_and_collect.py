"""Claim: after `del`, call gc.collect() to give the memory back."""

import gc

from figures import MIB, conclude, mib, rss, show

before = rss()
rows = [bytes(300) for _ in range(400_000)]
other_name = rows
full = rss()
show("400,000 objects of 333 bytes: RSS grows by", mib(full - before))

del rows
show("del, while another name refers to the list: RSS falls by", mib(full - rss()))

del other_name
freed = full - rss()
show("del of the last name: RSS falls by", mib(freed))

found = gc.collect()
show("gc.collect() finds this many objects", f"{found:,}")
show("gc.collect(): RSS falls by another", mib(full - freed - rss()))

conclude(
    freed > 0.9 * (full - before) and abs(full - freed - rss()) < 2 * MIB,
    "deleting the last reference frees at once; gc.collect() adds nothing",
)
