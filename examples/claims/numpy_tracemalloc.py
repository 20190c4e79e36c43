"""Claim: tracemalloc does not see NumPy's memory."""

import tracemalloc

from figures import MIB, conclude, mib, need, show

numpy = need("numpy")
try:
    import torch
except ImportError:
    torch = None

SIZE = 64 * MIB


def traced(make):
    tracemalloc.start()
    kept = make()
    amount, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    del kept
    return amount


array = traced(lambda: numpy.ones(SIZE, dtype=numpy.uint8))
show(f"NumPy {numpy.__version__}, an array of 64 MiB: tracemalloc sees", mib(array))
tensor = None
if torch is not None:
    tensor = traced(lambda: torch.ones(SIZE, dtype=torch.uint8))
    show(f"torch {torch.__version__.split('+')[0]}, a tensor of 64 MiB: tracemalloc sees", mib(tensor))
else:
    show("torch is not installed: a tensor was not measured", "-")
conclude(
    array > 63 * MIB and (tensor is None or tensor < MIB),
    "tracemalloc sees NumPy arrays, but not torch tensors",
)
