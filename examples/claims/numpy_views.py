"""Claim: a small slice of a large array is small."""

from figures import MIB, conclude, mib, need, rss, show

numpy = need("numpy")


def keep(take):
    """Takes a part of each of 50 arrays of 2 MiB; RSS that stays."""
    before = rss()
    parts = [take(numpy.ones((512, 512))) for _ in range(50)]
    stayed = rss() - before
    return stayed, sum(part.nbytes for part in parts)


views, size = keep(lambda picture: picture[::16, ::16])
copies, _ = keep(lambda picture: picture[::16, ::16].copy())
show("50 slices of 8 KiB: sum of nbytes", mib(size))
show("RSS that the slices keep", mib(views))
show("RSS that copies of the slices keep", mib(copies))
conclude(views > 90 * MIB and copies < 10 * MIB, "a slice keeps the whole array that it was taken from")
