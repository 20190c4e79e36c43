"""Snapshots of PyTorch's CUDA allocator at the right moment, for ``tidemark gpu``.

    import tidemark.torch

    watching = tidemark.torch.watch(threshold=0.9)   # once, at the start
    for batch in batches:
        with tidemark.torch.step("train"):
            train(batch)

``watch`` switches the allocator's history on, in a ring of bounded length, and writes a snapshot

* before an out-of-memory error reaches the program,
* when a device's reserved memory first passes the threshold (and again after the cooldown),
* when ``watching.dump()`` is called,

until the budget of bytes on disk is used up. Nothing it does raises into the program: what goes
wrong is said once, as a warning. Without a CUDA device ``watch`` does nothing and says so.
"""

import os
import tempfile
import threading
import time
import warnings
from contextlib import contextmanager
from typing import Any, Callable, Iterator, List, Optional

import tidemark

__all__ = ["Watching", "step", "watch"]


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

    threshold     share of a device's memory, 0 to 1: a snapshot is written where more is reserved
    directory     where snapshots go: ``tidemark-PID-REASON-N.pickle``
    max_entries   length of the allocator's ring, about 150 bytes each in the file with its stack
    cooldown      seconds between two snapshots by threshold
    budget_bytes  of all snapshots together; afterwards none is written
    period        seconds between two looks at the reserved memory
    """
    if not 0 < threshold <= 1:
        raise ValueError("threshold is a share of the device, above 0 and at most 1")
    import torch

    if not torch.cuda.is_available():
        warnings.warn("tidemark.torch.watch: no CUDA device here, nothing is watched", stacklevel=2)
        return Watching(_NoDevices(), threshold, directory, cooldown, budget_bytes)
    devices = _Devices(torch, max_entries)
    watching = Watching(devices, threshold, directory, cooldown, budget_bytes)
    devices.on_out_of_memory(lambda: watching.dump("oom"))
    watching.start(period)
    return watching


class _NoDevices:
    """Where there is nothing to watch."""

    def reserved_shares(self) -> List[float]:
        return []

    def write(self, path: str) -> None:
        raise RuntimeError("no CUDA device here")

    def close(self) -> None:
        return None


class _Devices:
    """The devices of this process, by torch's own functions."""

    def __init__(self, torch: Any, max_entries: int) -> None:
        self._cuda = torch.cuda
        self._attach = getattr(torch._C, "_cuda_attach_out_of_memory_observer", None)
        record = torch.cuda.memory._record_memory_history
        try:
            record(max_entries=max_entries, stacks="python")
        except TypeError:  # before 2.1
            record(True, trace_alloc_max_entries=max_entries, trace_alloc_record_context=True)

    def reserved_shares(self) -> List[float]:
        """Reserved memory by device, as a share of what the device has; costs microseconds."""
        return [
            self._cuda.memory_reserved(device)
            / self._cuda.get_device_properties(device).total_memory
            for device in range(self._cuda.device_count())
        ]

    def on_out_of_memory(self, call: Callable[[], Any]) -> None:
        if self._attach is not None:
            # device, bytes asked for, the device's total and its free bytes
            self._attach(lambda *_: call())

    def write(self, path: str) -> None:
        self._cuda.memory._dump_snapshot(path)

    def close(self) -> None:
        self._cuda.memory._record_memory_history(enabled=None)


class Watching:
    """What ``watch`` began; a context manager that ends it."""

    def __init__(
        self,
        devices: Any,
        threshold: float,
        directory: str,
        cooldown: float,
        budget_bytes: int,
    ) -> None:
        self._devices = devices
        self._threshold = threshold
        self._directory = directory
        self._cooldown = cooldown
        self._left = budget_bytes
        self._written = 0
        self._last: Optional[float] = None
        self._warned = False
        self._lock = threading.Lock()
        self._end = threading.Event()
        self._thread: Optional[threading.Thread] = None

    def start(self, period: float) -> None:
        """Look at the reserved memory every ``period`` seconds, in a thread of its own."""
        self._thread = threading.Thread(
            target=self._run, args=(period,), name="tidemark-gpu", daemon=True
        )
        self._thread.start()

    def look(self, now: Optional[float] = None) -> Optional[str]:
        """One look: the path of a snapshot where the threshold is passed and the cooldown over."""
        moment = time.monotonic() if now is None else now
        if self._last is not None and moment - self._last < self._cooldown:
            return None
        if not any(share >= self._threshold for share in self._devices.reserved_shares()):
            return None
        self._last = moment
        return self.dump("threshold")

    def dump(self, reason: str = "asked") -> Optional[str]:
        """Write a snapshot now; its path, or None where that was not possible."""
        # Never wait: an out-of-memory observer runs within the allocation of any thread.
        if not self._lock.acquire(blocking=False):
            return None
        try:
            return self._write(reason)
        except Exception as error:  # the program goes on, whatever happens here
            self._warn(f"no snapshot could be written: {error}")
            return None
        finally:
            self._lock.release()

    def close(self) -> None:
        """End watching; the allocator's history is switched off."""
        self._end.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(timeout=5)
        self._devices.close()

    def __enter__(self) -> "Watching":
        return self

    def __exit__(self, *exception: Any) -> None:
        self.close()

    def _write(self, reason: str) -> Optional[str]:
        if self._left <= 0:
            self._warn("the budget of bytes is used up, no further snapshot is written")
            return None
        os.makedirs(self._directory, exist_ok=True)
        name = f"tidemark-{os.getpid()}-{reason}-{self._written + 1}.pickle"
        path = os.path.join(self._directory, name)
        # A reader never meets half a snapshot.
        handle, part = tempfile.mkstemp(suffix=".part", dir=self._directory)
        os.close(handle)
        try:
            self._devices.write(part)
            size = os.path.getsize(part)
            os.replace(part, path)
        except BaseException:
            os.unlink(part)
            raise
        self._left -= size
        self._written += 1
        return path

    def _run(self, period: float) -> None:
        while not self._end.wait(period):
            try:
                self.look()
            except Exception as error:
                self._warn(f"the devices cannot be looked at: {error}")
                return

    def _warn(self, text: str) -> None:
        if not self._warned:
            self._warned = True
            warnings.warn(f"tidemark.torch: {text}", stacklevel=3)
