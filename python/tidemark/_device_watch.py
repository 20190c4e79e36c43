"""Snapshots of torch's CUDA allocator at the right moment: what ``tidemark.torch.watch`` and
``tidemark run --gpu`` share.

    Devices     torch's own functions: history, observer, reserved shares, writing a snapshot
    Watching    decides when to write one: threshold, another rank's snapshot, cooldown, budget of
                bytes; it never raises in the program
"""

import os
import tempfile
import threading
import time
import warnings
from typing import Any, Callable, List, Optional, Tuple

from ._device_ranks import ANSWER, Ranks


def _warn(text: str) -> None:
    warnings.warn(f"tidemark.torch: {text}", stacklevel=4)


class NoDevices:
    """Used if there is nothing to watch."""

    def reserved_shares(self) -> List[float]:
        return []

    def write(self, path: str) -> None:
        raise RuntimeError("no CUDA device here")

    def close(self) -> None:
        return None


class Devices:
    """The devices of this process, read with torch's own functions. A history that the program has switched on itself
    stays as it is."""

    def __init__(self, torch: Any, max_entries: int) -> None:
        self._cuda = torch.cuda
        self._attach = getattr(torch._C, "_cuda_attach_out_of_memory_observer", None)
        self._open = True
        recording = getattr(torch._C, "_cuda_isHistoryEnabled", None)
        self._own_history = recording is None or not recording()
        if self._own_history:
            self._record(max_entries)

    def _record(self, max_entries: int) -> None:
        record = self._cuda.memory._record_memory_history
        try:
            record(max_entries=max_entries, stacks="python")
        except TypeError:  # before 2.1
            record(True, trace_alloc_max_entries=max_entries, trace_alloc_record_context=True)

    def reserved_shares(self) -> List[float]:
        """Reserved memory by device, as a share of the device's memory; costs microseconds."""
        return [
            self._cuda.memory_reserved(device)
            / self._cuda.get_device_properties(device).total_memory
            for device in range(self._cuda.device_count())
        ]

    def on_out_of_memory(self, call: Callable[[], Any]) -> None:
        """Called before the error is raised, in the thread that requested memory. torch never removes its observers, so
        after ``close`` this one does nothing."""
        if self._attach is not None:
            # device, bytes asked for, the device's total and its free bytes
            self._attach(lambda *_: call() if self._open else None)

    def write(self, path: str) -> None:
        self._cuda.memory._dump_snapshot(path)

    def close(self) -> None:
        self._open = False
        if self._own_history:
            record = self._cuda.memory._record_memory_history
            try:
                record(enabled=None)
            except TypeError:  # before 2.1
                record(False)


class Watching:
    """The result of ``watch``: a context manager that ends the watching."""

    def __init__(
        self,
        devices: Any,
        threshold: float,
        directory: str,
        cooldown: float,
        budget_bytes: int,
        told: Optional[Callable[[str, str], Any]] = None,
        warned: Callable[[str], Any] = _warn,
    ) -> None:
        """``told`` is called with the reason and path of each snapshot; ``warned`` once if something fails."""
        self._devices = devices
        self._threshold = threshold
        self._directory = directory
        self._cooldown = cooldown
        self._left = budget_bytes
        self._written = 0
        self._ranks = Ranks(directory)
        self._last: Optional[float] = None
        self._answered: Optional[float] = None
        self._told = told
        self._warned: Optional[Callable[[str], Any]] = warned
        self._lock = threading.Lock()
        self._end = threading.Event()
        self._thread: Optional[threading.Thread] = None

    def start(self, period: float) -> None:
        """Check the reserved memory every ``period`` seconds, in a separate thread."""
        self._thread = threading.Thread(
            target=self._run, args=(period,), name="tidemark-gpu", daemon=True
        )
        self._thread.start()

    def look(self, now: Optional[float] = None) -> Optional[str]:
        """One check: writes a snapshot and returns its path if the threshold is passed and the cooldown is over, or if
        another rank of the job wrote one."""
        moment = time.monotonic() if now is None else now
        if self._ranks.asked():
            return self.answer(moment)
        if self._rests(self._last, moment):
            return None
        if not any(share >= self._threshold for share in self._devices.reserved_shares()):
            return None
        self._last = moment
        return self.dump("threshold")

    def answer(self, now: Optional[float] = None) -> Optional[str]:
        """Write this rank's snapshot after another rank wrote one; only once, even if this is called for several
        reasons."""
        moment = time.monotonic() if now is None else now
        if self._rests(self._answered, moment):
            return None
        self._answered = moment
        return self.dump(ANSWER)

    def _rests(self, last: Optional[float], moment: float) -> bool:
        return last is not None and moment - last < self._cooldown

    def dump(self, reason: str = "asked") -> Optional[str]:
        """Write a snapshot now. Returns its path, or None if that was not possible."""
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
            self._warn("the size limit of all snapshots is reached, no further snapshot is written")
            return None
        name = f"{self._ranks.stem()}-{reason}-{self._written + 1}.pickle"
        # A reader never sees half a snapshot.
        handle, part = self._part()
        os.close(handle)
        path = os.path.join(os.path.dirname(part), name)
        try:
            self._devices.write(part)
            size = os.path.getsize(part)
            os.replace(part, path)
        except BaseException:
            os.unlink(part)
            raise
        self._left -= size
        self._written += 1
        if self._told is not None:
            self._told(reason, path)
        return path

    def _part(self) -> Tuple[int, str]:
        """The requested folder, else the folder for temporary files."""
        try:
            os.makedirs(self._directory, exist_ok=True)
            return tempfile.mkstemp(suffix=".part", dir=self._directory)
        except OSError:
            return tempfile.mkstemp(suffix=".part")

    def _run(self, period: float) -> None:
        while not self._end.wait(period):
            try:
                self.look()
            except Exception as error:
                self._warn(f"the devices cannot be read: {error}")
                return

    def _warn(self, text: str) -> None:
        warned, self._warned = self._warned, None
        if warned is not None:
            warned(text)
