"""Claim: Python never returns memory to the system, because of fragmentation."""

from figures import MIB, conclude, mib, rss, show


def fill_and_empty(keep_every):
    """400,000 small objects, of which every `keep_every`-th stays (0: none). RSS: full, and what is left."""
    before = rss()
    rows = [bytes(300) for _ in range(400_000)]
    kept = rows[::keep_every] if keep_every else []
    full = rss() - before
    del rows
    return full, rss() - before, len(kept)


full, left, _ = fill_and_empty(0)
show("400,000 objects: RSS grows by", mib(full))
show("all of them deleted: remaining", mib(left))
none_kept = left

full, left, kept = fill_and_empty(500)
show(f"the same, but {kept} objects are kept ({kept * 333 / 1024:.0f} KiB): remaining", mib(left))

conclude(
    none_kept < 3 * MIB and left > 0.8 * full,
    "empty arenas are returned; one object in each arena keeps all of it",
)
