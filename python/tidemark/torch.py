"""Memory by module, and snapshots of PyTorch's CUDA allocator at the right moment, for ``tidemark gpu``.

    print(tidemark.torch.by_module(model, train_step))   # parameters, gradients, activations, peak by nn.Module

Snapshots::

    import tidemark.torch

    watching = tidemark.torch.watch(threshold=0.9)   # once, at the start
    for batch in batches:
        with tidemark.torch.step("train"):
            train(batch)

``watch`` switches the allocator's history on, in a ring of bounded length, and writes a snapshot

* before an out-of-memory error reaches the program,
* when a device's reserved memory first passes the threshold (and again after the cooldown),
* when another rank of the job, also on another host, wrote one into the same folder,
* when ``watching.dump()`` is called,

until the size limit on disk is reached. It never raises in the program: a failure is reported once, as a
warning. Without a CUDA device, ``watch`` only warns and does nothing.
"""

import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Callable, Iterator, Optional

import tidemark

from ._device_watch import Devices, NoDevices, Watching

if TYPE_CHECKING:
    from ._by_module import ModuleMemory

__all__ = ["Watching", "by_module", "step", "watch"]


def by_module(model: Any, step: Optional[Callable[..., Any]] = None, *arguments: Any, **keywords: Any) -> "ModuleMemory":
    """The memory of one step by module: parameters, gradients, saved activations and peak, on the host and devices.

    ``memory = by_module(model, step, *arguments)`` calls ``step``; ``with by_module(model) as memory:`` measures a
    block. ``print(memory)`` shows the table, ``memory.rows`` holds it, ``memory.result`` is what the step returned.
    Takes about as long as the step with a profiler. On CUDA devices it resets torch's peak statistics.
    Raises TypeError for arguments of another type.
    """
    from ._by_module import by_module as measure

    return measure(model, step, arguments, keywords)


@contextmanager
def step(name: str) -> Iterator[None]:
    """A step of the program: on the recording's timeline, and a mark in the next snapshot.

    The mark is an annotation of torch's profiler, which a snapshot keeps from torch 2.6 on.
    """
    import torch

    with tidemark.step(name), torch.profiler.record_function(f"tidemark step {name}"):
        yield


def watch(
    threshold: float = 0.9,
    directory: str = ".",
    max_entries: int = 200_000,
    cooldown: float = 60.0,
    budget_bytes: int = 2 << 30,
    period: float = 1.0,
) -> "Watching":
    """Begin to watch the devices of this process.

    threshold     share of a device's memory, 0 to 1: a snapshot is written if more is reserved
    directory     folder of the snapshots: ``tidemark-PID-REASON-N.pickle``, of ranks
                  ``tidemark-JOB-rankN-PID-REASON-N.pickle``
    max_entries   length of the allocator's ring, about 150 bytes each in the file with its stack
    cooldown      seconds between two snapshots by threshold
    budget_bytes  limit of all snapshots together; then no more are written
    period        seconds between two checks of the reserved memory
    """
    if not 0 < threshold <= 1:
        raise ValueError("threshold is a share of the device, above 0 and at most 1")
    import torch

    if not torch.cuda.is_available():
        warnings.warn("tidemark.torch.watch: no CUDA device here, nothing is watched", stacklevel=2)
        return Watching(NoDevices(), threshold, directory, cooldown, budget_bytes)
    devices = Devices(torch, max_entries)
    watching = Watching(devices, threshold, directory, cooldown, budget_bytes)
    devices.on_out_of_memory(lambda: watching.dump("oom"))
    watching.start(period)
    return watching
