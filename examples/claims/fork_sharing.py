"""Claim: forked workers share the memory of their parent. Claim: gc.freeze() before the fork keeps it shared."""

import gc

from figures import MIB, conclude, in_child, mib, show, smaps

try:
    import numpy
except ImportError:
    numpy = None


def private_after(read):
    """Private memory that a forked child gains by reading."""
    before = smaps("Private_Dirty")
    read()
    return smaps("Private_Dirty") - before


def read_objects():
    for text in table:
        len(text)


table = [str(number) * 10 for number in range(600_000)]
size = 600_000 * 100
show("a list of 600,000 strings takes about", mib(size))
reading = in_child(private_after, read_objects)
show("a child reads all of them: private memory grows by", mib(reading))
collecting = in_child(private_after, gc.collect)
show("a child calls gc.collect(): private memory grows by", mib(collecting))
gc.freeze()
frozen = in_child(private_after, gc.collect)
show("the same after gc.freeze() in the parent", mib(frozen))
frozen_reading = in_child(private_after, read_objects)
show("a child reads all, after gc.freeze()", mib(frozen_reading))
array = None
if numpy is not None:
    numbers = numpy.ones(60 * MIB, dtype=numpy.uint8)
    array = in_child(private_after, lambda: numbers.sum())
    show("a child reads a NumPy array of 60 MiB", mib(array))
conclude(
    reading > 30 * MIB and frozen_reading > 30 * MIB and (array is None or array < 5 * MIB),
    "reading Python objects copies their pages, frozen or not; reading an array does not",
)
