"""Torch tensors with their own storage, with storage shared by views, in a module, and shared with NumPy."""

import gc
import json
import os

import numpy
import torch

MIB = 1 << 20


class Model:
    pass


whole = torch.ones(4 * MIB // 4)
FIRST, SECOND = Model(), Model()
FIRST.view, SECOND.view = whole[:10], whole[10:20]
del whole
LAYER = torch.nn.Linear(1024, 1024, bias=False)
KEPT = [torch.ones(MIB // 4) for _ in range(12)]
ARRAY = numpy.ones(3 * MIB // 8)
FROM_ARRAY = torch.from_numpy(ARRAY)
LOSSES = [torch.nn.functional.linear(torch.ones(8, 1024), LAYER.weight).sum() for _ in range(3)]
DETACHED = LOSSES[0].detach()
gc.collect()
tensors = {}
for value in gc.get_objects():
    if issubclass(type(value), torch.Tensor):  # isinstance would query proxies, which print warnings
        storage = value.untyped_storage()
        tensors[storage.data_ptr()] = storage.nbytes()
print(
    json.dumps(
        {
            "kept": hex(id(KEPT)),
            "weight": hex(id(LAYER.weight)),
            "view": hex(id(FIRST.view)),
            "loss": hex(id(LOSSES[0])),
            "detached": hex(id(DETACHED)),
            "array": hex(id(ARRAY)),
            "storageBytes": sum(size for at, size in tensors.items() if at != ARRAY.ctypes.data),
        }
    ),
    flush=True,
)
os.read(0, 1)
