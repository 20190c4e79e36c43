"""Recording and measuring from inside the program; ``import tidemark`` loads this on first use."""

import atexit
import os
import sys
import time
from types import CodeType, TracebackType
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Set, Tuple, Type, TypeVar, Union, overload

from ._executions import LineCounter, Place
from ._figures import (
    Comparison,
    Frame,
    MeasuredLine,
    Snapshot,
    code_of,
    function_name,
    measured_lines,
    name_of,
    own_frame,
    signed_text_of,
    source_of,
    table_rows,
    text_of,
    with_executions,
)
from ._peak_watch import PeakWatch, rss_bytes
from ._program import Agent

_Function = TypeVar("_Function", bound=Callable[..., Any])

_OFF = ("", "0", "false", "no", "off")
_HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "")
_COUNTER_FILE = LineCounter.begin.__code__.co_filename


class _Profiled(NamedTuple):
    """A function under ``@profile``."""

    code: CodeType
    #: None: its executions are not counted.
    counter: Optional[LineCounter]


class _State:
    """The state of a process. ``switched_off``: by ``enabled_by``, until ``start`` is called."""

    agent: Optional[Agent] = None
    #: Whether ``start`` armed the agent, not ``tidemark run`` or ``attach``.
    is_ours = False
    switched_off = False
    #: Recordings that this process has begun.
    recordings = 0
    #: Whether ``profile`` could not start recording.
    cannot_start = False
    profiled: "List[_Profiled]" = []


def start(period: Union[int, str] = "64K", native: bool = False) -> None:
    """Begins to record this process's allocations, as ``tidemark run`` would from its start.

    ``period``: bytes between two samples, such as ``65536`` or ``"64K"``; smaller is sharper and slower.
    ``native``: stacks of C and C++ code too. Does nothing if the process is already being recorded.
    Raises RuntimeError, with the cause, if it cannot be recorded, and ValueError for a wrong period.
    """
    _State.switched_off = False
    agent = _State.agent = _State.agent or Agent()
    if not agent.is_armed():
        try:
            agent.arm(str(period), native)
        except RuntimeError as error:
            agent.clear()
            if "period=" not in str(error):
                raise
            raise ValueError(f"period takes bytes or a size such as '64K', not {period!r}") from None
        _State.is_ours = True
        _State.recordings += 1


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
    return Snapshot(_State.agent.read(), rss_bytes(), _State.recordings)


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


@overload
def profile(function: _Function) -> _Function: ...


@overload
def profile(*, executions: bool = False) -> Callable[[_Function], _Function]: ...


def profile(function: Any = None, *, executions: bool = False) -> Any:
    """``@tidemark.profile``: prints, at the program's end, what each line of the function allocated and still holds.

    The function itself is not changed or wrapped; of a decorated one, the function inside is listed. Allocations of
    called functions count for the calling line.
    ``@tidemark.profile(executions=True)`` also counts how often each line is executed, which slows the function, and
    prints the bytes that an execution leaves behind.
    """
    if function is None:
        return lambda given: _profile(given, executions)
    return _profile(function, executions)


def _profile(function: Any, executions: bool) -> Any:
    code = code_of(function)
    if code is None:
        raise TypeError(f"@tidemark.profile takes a Python function, not {type(function).__name__}")
    is_new = all(code is not known.code for known in _State.profiled)  # inner functions share their code
    if is_new and not _State.switched_off and _is_recording():
        if not _State.profiled:
            atexit.register(_report_profiled)
        counter = LineCounter([code]) if executions else None
        if counter is not None:
            counter.begin()
        _State.profiled.append(_Profiled(code, counter))
    return function


def _is_recording() -> bool:
    """Starts recording. A decorator must not keep a program from running, so a failure is one line, printed once."""
    if not _State.cannot_start:
        try:
            start()
        except (OSError, RuntimeError) as error:
            _State.cannot_start = True
            sys.stderr.write(f"tidemark: no figures for @tidemark.profile: {error}\n")
    return not _State.cannot_start


def measure(*call: Any, **keywords: Any) -> "Measurement":
    """Measures a block, ``with tidemark.measure() as m:``, or a call, ``m = tidemark.measure(function, *arguments)``.

    ``m.result`` is what the function returned. ``print(m)`` shows the peak, the growth and the lines behind it.
    ``with tidemark.measure(executions=function) as m:`` also counts how often each line of that function (or of each of
    a list) is executed, which slows it: ``line.executions``, ``line.growth_each_bytes``. If this process cannot be
    recorded, only RSS is measured, and ``m.problem`` is the reason.
    """
    if not call:
        functions = keywords.pop("executions", ())
        if keywords:
            raise TypeError("tidemark.measure() takes a function before its arguments")
        return Measurement(executions=_codes_of(functions))
    function, *arguments = call
    with Measurement() as measurement:
        measurement.result = function(*arguments, **keywords)
    return measurement


def _codes_of(functions: Any) -> List[CodeType]:
    given = functions if isinstance(functions, (list, tuple)) else [functions]
    codes = [code_of(function) for function in given]
    for function, code in zip(given, codes):
        if code is None:
            raise TypeError(f"executions takes a Python function or a list of them, not {type(function).__name__}")
    return [code for code in codes if code is not None]


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
    #: Bytes that were allocated in the block, freed ones included; None as above.
    allocated_bytes: Optional[float] = None
    seconds = 0.0
    #: What the measured function returned.
    result: Any = None

    def __init__(
        self,
        period: Union[int, str] = "4K",
        even_failed: bool = False,
        executions: Sequence[CodeType] = (),
    ) -> None:
        """``even_failed``: a block that raises gets its figures too. ``executions``: count how often each line of these
        is executed."""
        self._counter = LineCounter(executions) if executions else None
        self._executions: Optional[Dict[Place, int]] = None
        self._only_rss_because = ""
        self.changes: Optional[Comparison] = None
        self._period = period
        self._even_failed = even_failed
        self._before: Optional[Snapshot] = None
        self._after: Optional[Snapshot] = None
        self._started = False

    def __enter__(self) -> "Measurement":
        if not _State.switched_off:
            try:
                self._before = self._begin()
            except (OSError, RuntimeError) as error:
                self._only_rss_because = str(error)
        self._peak = PeakWatch()
        self._since = time.perf_counter()
        if self._counter is not None:
            self._counter.begin()
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        if self._counter is not None:
            self._executions = self._counter.end()
        self.seconds = time.perf_counter() - self._since
        first, last, self.peak_rss_bytes = self._peak.end()
        self.peak_growth_bytes = self.peak_rss_bytes - first
        self.rss_growth_bytes = last - first
        try:
            if self._before is not None and (kind is None or self._even_failed):
                self._after = snapshot()
                self.changes = compare(self._before, self._after)
                self.growth_bytes, self.error_bytes = self.changes.growth_bytes, self.changes.error_bytes
                self.allocated_bytes = max(0.0, self._after.allocated_bytes - self._before.allocated_bytes)
            elif kind is not None and not self._only_rss_because:
                self._only_rss_because = f"the block ended with {kind.__name__}"
        except (OSError, RuntimeError, ValueError) as failed:
            self._only_rss_because = str(failed)
        finally:
            if self._started:
                stop()

    def _begin(self) -> Snapshot:
        agent = _State.agent
        if agent is not None and agent.is_armed():
            return snapshot()
        start(period=self._period)
        self._started = _State.is_ours
        # Nothing was recorded before, unless `tidemark run` did.
        return Snapshot([], rss_bytes(), _State.recordings) if self._started else snapshot()

    def top(self, count: int = 10) -> List[Any]:
        """The lines that grew most."""
        return [] if self.changes is None else self.changes.top(count)

    def lines(self, line_of: Callable[[Tuple[Frame, ...]], Optional[Frame]] = own_frame) -> List[MeasuredLine]:
        """Growth, peak and allocations by line of your own code, the largest first.

        ``line_of`` picks the frame of a stack that its allocations count for; None leaves them out.
        """
        if self._before is None or self._after is None:
            return []
        lines = measured_lines(self._before, self._after, without_own(line_of), knows_peak=self._started)
        return lines if self.problem else with_executions(lines, self._executions)

    @property
    def problem(self) -> str:
        """Why only RSS was measured, or why executions were not counted; else empty."""
        if self._only_rss_because:
            return f"only RSS was measured: {self._only_rss_because}"
        return "" if self._counter is None else self._counter.problem

    def __repr__(self) -> str:
        return f"<tidemark measurement: {str(self).splitlines()[0]}>"

    def __str__(self) -> str:
        if not self.peak_rss_bytes:
            return "not measured yet: the figures are known after the block"
        head = (
            f"peak RSS {text_of(self.peak_rss_bytes)} ({signed_text_of(self.peak_growth_bytes)}), "
            f"RSS {signed_text_of(self.rss_growth_bytes)}, {self.seconds:.3g} s"
        )
        if self.changes is None:
            return f"{head}\n{self.problem}" if self.problem else head
        return "\n".join([head, self._totals(), *table_rows(self.lines()[:10])])

    def files(self) -> Set[str]:
        """All files in the stacks of what was allocated."""
        return {frame.file for site in (self._after.sites if self._after else ()) for frame in site.stack}

    def _totals(self) -> str:
        return (
            f"live {signed_text_of(self.growth_bytes or 0)} +-{text_of(2 * (self.error_bytes or 0))}, "
            f"allocated {text_of(self.allocated_bytes or 0)}"
        )


def without_own(line_of: Callable[[Tuple[Frame, ...]], Optional[Frame]]) -> Callable[[Tuple[Frame, ...]], Optional[Frame]]:
    """Leaves out the measurement's own work, also where it runs below a line of the program (a counter of lines)."""

    def without(stack: Tuple[Frame, ...]) -> Optional[Frame]:
        frame = line_of(stack)
        if frame is None or frame.file.startswith(_HERE) or any(each.file == _COUNTER_FILE for each in stack):
            return None
        return frame

    return without


def _report_profiled() -> None:
    profiled, _State.profiled = _State.profiled, []
    if not profiled or _State.agent is None or not _State.agent.is_armed():
        return
    try:
        taken = snapshot()
    except (OSError, RuntimeError) as error:
        sys.stderr.write(f"tidemark: no figures for @tidemark.profile: {error}\n")
        return
    for code, counter in profiled:
        lines = measured_lines(Snapshot([], 0), taken, without_own(lines_in(code)), knows_peak=True)
        if counter is not None:
            executions = counter.end()
            if counter.problem:
                sys.stderr.write(f"tidemark: {counter.problem}\n")
            else:
                lines = with_executions(lines, executions)
        sys.stderr.write(_table_of(code, sorted(lines, key=lambda line: line.line)))


def lines_in(*codes: CodeType) -> Callable[[Tuple[Frame, ...]], Optional[Frame]]:
    """Picks the innermost frame of a stack that is in one of the functions."""
    places = {(code.co_filename, line) for code in codes for line in _line_numbers(code) - _decorator_line(code)}

    def line_of(stack: Tuple[Frame, ...]) -> Optional[Frame]:
        return next((frame for frame in stack if (frame.file, frame.line) in places), None)

    return line_of


def _decorator_line(code: CodeType) -> Set[int]:
    """The code of a decorated function starts at its first decorator, whose call is not of the function."""
    first = code.co_firstlineno
    return {first} if source_of(code.co_filename, first).startswith("@") else set()


def _line_numbers(code: CodeType) -> Set[int]:
    """The code objects of a function and of the functions defined in it."""
    import dis

    numbers = {line for _, line in dis.findlinestarts(code) if line}
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            numbers |= _line_numbers(constant)
    return numbers


def _table_of(code: CodeType, lines: List[MeasuredLine]) -> str:
    head = f"tidemark: {function_name(code)} ({name_of(code.co_filename)}:{code.co_firstlineno})"
    if not lines:
        return f"{head}: none of its allocations was sampled\n"
    table = table_rows(lines, lambda line: f"{line.line:>4}  {source_of(line.file, line.line)}", first="live now")
    return "\n".join([head, *table]) + "\n"


def _clear() -> None:
    if _State.agent is not None:
        _State.agent.clear()


atexit.register(_clear)
