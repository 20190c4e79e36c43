"""Recording and measuring from inside the program; ``import tidemark`` loads this on first use."""

import atexit
import os
import sys
import threading
import time
from types import CodeType, TracebackType
from typing import Any, Callable, List, Optional, Set, Tuple, Type, TypeVar, Union

from ._figures import Comparison, Frame, Line, Snapshot, lines_of, signed_text_of, source_of, text_of
from ._program import Agent

_Function = TypeVar("_Function", bound=Callable[..., Any])

_OFF = ("", "0", "false", "no", "off")
_PEAK_INTERVAL_SECONDS = 0.01
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class _State:
    """The state of a process. ``switched_off``: by ``enabled_by``, until ``start`` is called."""

    agent: Optional[Agent] = None
    #: Whether ``start`` armed the agent, not ``tidemark run`` or ``attach``.
    is_ours = False
    switched_off = False
    profiled: "List[CodeType]" = []


def start(period: Union[int, str] = "64K", native: bool = False) -> None:
    """Begins to record this process's allocations, as ``tidemark run`` would from its start.

    ``period``: bytes between two samples, such as ``65536`` or ``"64K"``; smaller is sharper and slower.
    ``native``: stacks of C and C++ code too. Does nothing if the process is already being recorded.
    Raises RuntimeError, with the cause, if it cannot be recorded.
    """
    _State.switched_off = False
    agent = _State.agent = _State.agent or Agent()
    if not agent.is_armed():
        agent.arm(str(period), native)
        _State.is_ours = True


def stop() -> None:
    """Ends the recording that ``start`` began, and prints the figures of functions under ``@profile``.

    A recording by ``tidemark run`` or ``attach`` continues.
    """
    _report_profiled()
    if _State.agent is not None and _State.is_ours:
        _State.is_ours = False
        if _State.agent.is_armed():
            _State.agent.disarm()
        else:
            _State.agent.clear()


def snapshot() -> Snapshot:
    """The live memory by the lines that allocated it. Takes about 0.3 s; other threads keep running."""
    if _State.agent is None or not _State.agent.is_armed():
        raise RuntimeError("nothing is recorded in this process: call tidemark.start() first")
    return Snapshot(_State.agent.read(), _rss_bytes())


def compare(before: Snapshot, after: Snapshot) -> Comparison:
    """The changes between two snapshots, line by line, with the error of each change."""
    return Comparison(before, after)


def enabled_by(variable: str, period: Union[int, str] = "64K") -> bool:
    """Starts recording if the environment variable is set to anything but 0, false, no or off.

    Otherwise ``profile`` and ``measure`` do nothing until ``start`` is called.
    """
    if os.environ.get(variable, "").strip().lower() in _OFF:
        _State.switched_off = True
        return False
    start(period)
    return True


def profile(function: _Function) -> _Function:
    """``@tidemark.profile``: prints, at the program's end, what each line of the function allocated and still holds.

    The function itself is not changed or wrapped. Allocations of called functions count for the calling line.
    """
    code = getattr(function, "__code__", None)
    if not isinstance(code, CodeType):
        raise TypeError(f"@tidemark.profile takes a Python function, not {type(function).__name__}")
    if not _State.switched_off:
        start()
        if not _State.profiled:
            atexit.register(_report_profiled)
        _State.profiled.append(code)
    return function


def measure(*call: Any, **keywords: Any) -> "Measurement":
    """Measures a block, ``with tidemark.measure() as m:``, or a call, ``m = tidemark.measure(function, *arguments)``.

    ``m.result`` is what the function returned. ``print(m)`` shows the peak, the growth and the lines behind it.
    """
    if not call:
        if keywords:
            raise TypeError("tidemark.measure() takes a function before its arguments")
        return Measurement()
    function, *arguments = call
    with Measurement() as measurement:
        measurement.result = function(*arguments, **keywords)
    return measurement


class Measurement:
    """Peak and growth of a block. RSS is the whole process's, other threads included."""

    #: Bytes. The highest RSS inside the block, and how much higher than at its beginning.
    peak_rss_bytes = 0
    peak_growth_bytes = 0
    rss_growth_bytes = 0
    #: Growth of live bytes from the beginning of the block to its end; None if nothing was recorded, or the block
    #: failed.
    growth_bytes: Optional[float] = None
    error_bytes: Optional[float] = None
    seconds = 0.0
    #: What the measured function returned.
    result: Any = None

    def __init__(self) -> None:
        self.changes: Optional[Comparison] = None
        self._before: Optional[Snapshot] = None
        self._started = False

    def __enter__(self) -> "Measurement":
        if not _State.switched_off:
            self._before = self._begin()
        self._peak = _PeakWatch()
        self._since = time.perf_counter()
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        self.seconds = time.perf_counter() - self._since
        first, last, self.peak_rss_bytes = self._peak.end()
        self.peak_growth_bytes = self.peak_rss_bytes - first
        self.rss_growth_bytes = last - first
        try:
            # After an exception, a failing snapshot would only hide it.
            if self._before is not None and kind is None:
                self.changes = compare(self._before, snapshot())
                self.growth_bytes, self.error_bytes = self.changes.growth_bytes, self.changes.error_bytes
        finally:
            if self._started:
                stop()

    def _begin(self) -> Snapshot:
        agent = _State.agent
        if agent is not None and agent.is_armed():
            return snapshot()
        start(period="4K")
        self._started = _State.is_ours
        # Nothing was recorded before, unless `tidemark run` did.
        return Snapshot([], _rss_bytes()) if self._started else snapshot()

    def top(self, count: int = 10) -> List[Any]:
        """The lines that grew most."""
        return [] if self.changes is None else self.changes.top(count)

    def __str__(self) -> str:
        head = (
            f"peak RSS {text_of(self.peak_rss_bytes)} ({signed_text_of(self.peak_growth_bytes)}), "
            f"RSS {signed_text_of(self.rss_growth_bytes)}, {self.seconds:.3g} s"
        )
        return head if self.changes is None else f"{head}\n{self.changes}"


class _PeakWatch:
    """The highest RSS while it runs: the kernel's high-water mark if that rose, else the highest of readings 10 ms
    apart."""

    def __init__(self) -> None:
        self._first = self._highest = _rss_bytes()
        self._mark = _high_water_bytes()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="tidemark-peak", daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._ended.wait(_PEAK_INTERVAL_SECONDS):
            self._highest = max(self._highest, _rss_bytes())

    def end(self) -> Tuple[int, int, int]:
        """First, last and highest RSS."""
        last, mark = _rss_bytes(), _high_water_bytes()
        self._ended.set()
        self._thread.join()
        highest = max(self._highest, last)
        return self._first, last, max(highest, mark) if mark > self._mark else highest


def _rss_bytes() -> int:
    with open("/proc/self/statm", "rb") as file:
        return int(file.read().split()[1]) * _PAGE_BYTES


def _high_water_bytes() -> int:
    with open("/proc/self/status", "rb") as file:
        for row in file:
            if row.startswith(b"VmHWM:"):
                return int(row.split()[1]) * 1024
    return 0


def _report_profiled() -> None:
    profiled, _State.profiled = _State.profiled, []
    if not profiled or _State.agent is None or not _State.agent.is_armed():
        return
    try:
        taken = snapshot()
    except (OSError, RuntimeError) as error:
        sys.stderr.write(f"tidemark: no figures for @tidemark.profile: {error}\n")
        return
    for code in profiled:
        sys.stderr.write(_table_of(code, _lines_in(code, taken)))


def _lines_in(code: CodeType, taken: Snapshot) -> List[Line]:
    places = {(code.co_filename, line) for line in _line_numbers(code)}

    def line_of(stack: Tuple[Frame, ...]) -> Optional[Frame]:
        return next((frame for frame in stack if (frame.file, frame.line) in places), None)

    return sorted(lines_of(taken.sites, line_of), key=lambda line: line.line)


def _line_numbers(code: CodeType) -> Set[int]:
    """The code objects of a function and of the functions defined in it."""
    import dis

    numbers = {line for _, line in dis.findlinestarts(code) if line}
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            numbers |= _line_numbers(constant)
    return numbers


def _table_of(code: CodeType, lines: List[Line]) -> str:
    head = f"tidemark: {code.co_name} ({code.co_filename}:{code.co_firstlineno})"
    if not lines:
        return f"{head}: none of its allocations was sampled\n"
    rows = [f"{head}\n  {'line':>6}  {'live now':>10}  {'allocated':>10}"]
    for line in lines:
        live, allocated = text_of(line.live_bytes), text_of(line.allocated_bytes)
        rows.append(f"  {line.line:>6}  {live:>10}  {allocated:>10}  {source_of(line.file, line.line)}")
    return "\n".join(rows) + "\n"


def _clear() -> None:
    if _State.agent is not None:
        _State.agent.clear()


atexit.register(_clear)
