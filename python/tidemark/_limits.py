"""Limits on the memory of a test: parsing, measuring, judging. ``pytest_plugin`` and ``testing`` use this.

A body is measured from its first call on, so what its set-up holds does not count::

    measured = Measured(limits, period)
    with measured:
        for _ in measured.calls():      # once; as often as limits on growth need
            body()
    for finding in measured.findings():
        ...

The agent counts the live bytes of this process, of all threads, Python's and native; a separate process reads child
processes (``_children``). With a period of 1 the figures are exact while no more than about 49,000 allocations live at a
time. Otherwise, and from then on, the agent samples, and each figure comes with its error.
"""

import gc
import math
import os
import re
import sys
from array import array
from types import TracebackType
from typing import Any, Iterator, List, NamedTuple, Optional, Sequence, Tuple, Type, Union

from ._children import INTERVAL, ChildWatch
from ._figures import Change, Comparison, Snapshot, lines_of, own_frame, source_of, text_of
from ._program import COVERED, Agent

_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)(i?b)?\s*\Z", re.IGNORECASE)
_PREFIXES = ("", "k", "m", "g", "t")
_MOST_CALLS = 1_000_000
#: Each round of calls is twice as long as the one before.
_ROUNDS = 4
#: Bytes between two samples for a limit on memory: a test that allocates much is hardly slower. What a call leaves
#: behind is mostly small, and takes every allocation.
_PERIOD = 4096
#: Growth fades if each of the last rounds leaves less per call than this share of the one before. A cache that fills
#: halves from round to round; what other threads do at the same time disturbs one round, not two.
_FADING = 0.75
#: Calls of a round that confirms growth and yields its lines (there are at most two), as a multiple of those of the first round.
_CONFIRMING = 4
_LINES = 3
#: Lines with a smaller share of the figure are not listed.
_LEAST_SHARE = 0.01
#: A thread carries the rest of its gap into the next recording (gap.c of the agent), where the block in which it ends counts
#: with the period of that gap. So many bytes end a gap of 64 KiB for certain.
_GAP_BYTES = 32 << 16
_HERE = os.path.dirname(os.path.abspath(__file__))


class LimitError(ValueError):
    """An invalid limit. The message is one line."""


class Growth(NamedTuple):
    """``bytes_per_call`` is the most that passes; None: nothing may stay live."""

    bytes_per_call: Optional[float]
    warmup: int = 2
    calls: int = 5


class Limits(NamedTuple):
    memory: Optional[int] = None
    growth: Optional[Growth] = None
    leaks: Optional[Growth] = None

    def __bool__(self) -> bool:
        return any(limit is not None for limit in self)


def parse_size(value: Any, who: str, example: str = "24 MiB") -> int:
    """ "24 MiB" and "24M" (powers of 1024), "24 MB" (powers of 1000), or a number of bytes."""
    size = math.nan
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        size = float(value)
    elif isinstance(value, str):
        match = _SIZE.match(value)
        if match:
            base = 1000 if (match.group(3) or "").lower() == "b" else 1024
            size = float(match.group(1)) * base ** _PREFIXES.index(match.group(2).lower())
    if not 1 <= size < 2**53:
        raise LimitError(f"{who} takes a size such as '{example}', not {_shown(value)}")
    return int(size)


def parse_growth(value: Any, who: str, warmup: Any = 2, calls: Any = 5) -> Growth:
    """ "1 KiB/call"."""
    size, slash, unit = value.rpartition("/") if isinstance(value, str) else ("", "", "")
    if not slash or unit.strip() not in ("call", "calls"):
        raise LimitError(f"{who} takes a growth rate such as '1 KiB/call', not {_shown(value)}")
    try:
        return parse_calls(float(parse_size(size, who)), who, warmup, calls)
    except LimitError as error:
        if "takes a size" not in str(error):
            raise
        raise LimitError(f"{who} takes a growth rate such as '1 KiB/call', not {_shown(value)}") from None


def parse_calls(bytes_per_call: Optional[float], who: str, warmup: Any = 2, calls: Any = 5) -> Growth:
    for name, value, least in (("warmup", warmup, 0), ("calls", calls, 1)):
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= _MOST_CALLS:
            raise LimitError(f"{who} takes {name} as a whole number from {least} on, not {_shown(value)}")
    return Growth(bytes_per_call, warmup, calls)


def parse_period(value: Union[int, str], who: str) -> int:
    return parse_size(value, who, "4K")


def _shown(value: Any) -> str:
    try:
        text = repr(value)
    except Exception:
        text = f"a {type(value).__name__}"
    return text if len(text) <= 60 else text[:57] + "..."


class Finding(NamedTuple):
    """A limit that was passed. ``lines``: the code behind it, the largest first."""

    limit: str
    measured: str
    lines: Tuple[str, ...]

    def text(self, sampling: str, next_command: str) -> str:
        """The report of the finding; fits on a screen."""
        rows = [f"tidemark: {self.limit}: {self.measured}"]
        rows += [f"  {line}" for line in self.lines] or ["  no line of code was recorded for it"]
        return "\n".join([*rows, f"  ({sampling})", f"  next: {next_command}"])


class _Figures(NamedTuple):
    live: int
    peak: int
    coarsest_period: int


class Measured:
    """One test under its limits. A context manager; see the module."""

    _agent: Optional[Agent] = None  # one a process
    _watch = ChildWatch()
    _is_warm = False

    def __init__(self, limits: Limits, period: Optional[int] = None) -> None:
        """``period``: mean bytes between two samples; None: chosen for the limits."""
        self.limits = limits
        self._period = period or (_PERIOD if limits.growth is limits.leaks is None else 1)
        self._pid = os.getpid()
        self._findings: List[Finding] = []
        #: Bytes: the most of the first call; None where the body did not return.
        self.peak_bytes: Optional[int] = None
        #: What ``rate_calls`` measured.
        self.bytes_per_call: Optional[float] = None
        self.coarsest_period = self._period

    @classmethod
    def agent(cls) -> Agent:
        """Raises RuntimeError, with the cause, if this process cannot be recorded."""
        agent = cls._agent = cls._agent or Agent()
        return agent

    @property
    def sampling(self) -> str:
        """The sampling interval, in words."""
        return sampling_text(self.coarsest_period, self.coarsest_period)

    def __enter__(self) -> "Measured":
        agent = self.agent()
        self._watch.start()
        if not Measured._is_warm:
            Measured._is_warm = True  # imports and objects created at the first use do not belong to the first test
            agent.arm(str(self._period), native=False, fixed=True)
            _figures(agent)
            agent.disarm()
        agent.arm(str(self._period), native=False, fixed=True)
        self._watch.begin(agent.status()["pool"])
        for _ in range(_GAP_BYTES // 1024):
            bytes(1024)
        _figures(agent)
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        if self._is_forked():
            return
        agent = self.agent()
        self._watch.end()
        if agent.is_armed():
            agent.disarm()
        else:
            agent.clear()

    def findings(self) -> List[Finding]:
        """The limits that were exceeded; empty in a forked child that returned from the body."""
        return [] if self._is_forked() else self._findings

    def calls(self) -> Iterator[None]:
        """Yields for each call of the body."""
        base = _figures(self.agent()).live
        yield
        if self._is_forked():
            return
        self._judge_peak(base)
        for limit, name in ((self.limits.growth, "limit_growth"), (self.limits.leaks, "no_leaks")):
            if limit is not None:
                yield from self._judge_growth(limit, name)
                if self._is_forked():
                    return

    def rate_calls(self, growth: Growth) -> Iterator[None]:
        """Yields for each call of the body; afterwards, the memory that one call leaves live is known."""
        for _ in range(growth.warmup):
            yield
        _settle()
        first = _figures(self.agent()).live
        for _ in range(growth.calls):
            yield
        _settle()
        self.bytes_per_call = (_figures(self.agent()).live - first) / growth.calls

    def _is_forked(self) -> bool:
        return os.getpid() != self._pid

    # --- peak -----------------------------------------------------------------------------------

    def _judge_peak(self, base: int) -> None:
        figures = _figures(self.agent())
        with_children, children_bytes, children = self._watch.end()
        self.coarsest_period = figures.coarsest_period
        self.peak_bytes = max(figures.peak, with_children) - base
        limit = self.limits.memory
        if limit is None or self.peak_bytes <= limit:
            return
        sites = self.agent().read()
        # The at-peak figures of sites lag behind the exact peak by up to 2 %; they exclude Tidemark's own memory.
        error = math.sqrt(sum(site.peak_error_bytes**2 for site in sites))
        if self.peak_bytes - 2 * error <= limit:
            return
        lines = lines_of((site._replace(live_bytes=site.peak_bytes) for site in sites if not _is_ours(site)), own_frame)
        among = ""
        if with_children > figures.peak:
            count = f"{children} child process" + ("es" if children != 1 else "")
            among = f", {text_of(children_bytes)} of it in {count}"
        self._findings.append(
            Finding(
                f"limit_memory {text_of(limit)}",
                f"{text_of(self.peak_bytes)}{_with_error(error)} at the peak{among}",
                tuple(
                    f"{text_of(line.live_bytes)}  {_place(line.file, line.line)}  {source_of(line.file, line.line)}"
                    for line in lines[:_LINES]
                    if line.live_bytes >= _LEAST_SHARE * self.peak_bytes
                ),
            )
        )

    # --- growth ---------------------------------------------------------------------------------

    def _judge_growth(self, limit: Growth, name: str) -> Iterator[None]:
        for _ in range(limit.warmup):
            yield
        agent, most = self.agent(), limit.bytes_per_call or 0.0
        counts = [*(limit.calls << number for number in range(_ROUNDS)), *[limit.calls * _CONFIRMING] * 2]
        # Of fixed size, because a stored number must not count as growth.
        rates, marks = array("d", [0.0] * _ROUNDS), array("q", [0, 0])
        within = 0  # rounds within the limit, one after the other
        before = None
        for number, count in enumerate(counts):
            if number == _ROUNDS:
                if within or (rates[-1] < _FADING * rates[-2] and rates[-2] < _FADING * rates[-3]):
                    return
                # The lines come from separate rounds, because snapshots leave something behind themselves. A cache that
                # became full in the last round leaves nothing behind in these.
                before = Snapshot(agent.read(), 0)
            _settle()
            marks[0] = _figures(agent).live
            for _ in range(count):
                yield
                if self._is_forked():
                    return
            _settle()
            marks[1] = _figures(agent).live
            self.coarsest_period = _figures(agent).coarsest_period
            growth = marks[1] - marks[0]
            error = _growth_error(growth, self.coarsest_period)
            within = within + 1 if (growth - 2 * error) / count <= most else 0
            if within == 2:
                return
            if before is None:
                rates[number] = growth / count
            elif not within:
                break
        assert before is not None
        changes = Comparison(before, Snapshot(agent.read(), 0)).changes
        self._findings.append(
            Finding(
                name if limit.bytes_per_call is None else f"{name} {text_of(most)}/call",
                f"{text_of(rates[-1])}/call stay live ({_rounds_text(limit, rates)})",
                _growing_lines(changes, sum(counts[_ROUNDS : number + 1])),
            )
        )


def _rounds_text(limit: Growth, rates: Sequence[float]) -> str:
    shown = ", ".join(text_of(rate) for rate in rates)
    lengths = ", ".join(str(limit.calls << number) for number in range(len(rates)))
    return f"{shown} in rounds of {lengths} calls"


def _growing_lines(changes: List[Change], calls: int) -> Tuple[str, ...]:
    growing = [change for change in changes if change.growth_bytes > 0 and not change.file.startswith(_HERE)]
    least = _LEAST_SHARE * sum(change.growth_bytes for change in growing)
    return tuple(
        f"{text_of(change.growth_bytes / calls)}/call  {_place(change.file, change.line)}  "
        f"{source_of(change.file, change.line)}"
        for change in growing
        if change.growth_bytes >= least
    )[:_LINES]


def sampling_text(finest: int, coarsest: int) -> str:
    """The sampling intervals that were used, in words."""
    first, last = ("every allocation" if period <= 1 else f"one byte in {period:,}" for period in (finest, coarsest))
    return f"recorded {first if first == last else f'{first} to {last}'}; children read every {INTERVAL * 1000:.0f} ms"


def _figures(agent: Agent) -> _Figures:
    status = agent.status()
    if status["covered"]:
        raise RuntimeError(COVERED)
    return _Figures(status["liveBytes"], status["peakBytes"], max(1, status["coarsestPeriodBytes"]))


def _settle() -> None:
    """Frees what only the interpreter keeps: cycles, and the names of attributes in its cache of methods (4,096 of them
    from 3.10 on), which would look like a leak of each call that looks an attribute up by a new name.
    """
    clear = getattr(sys, "_clear_internal_caches", None) or getattr(sys, "_clear_type_cache", None)
    if clear is not None:
        clear()
    gc.collect()


def _growth_error(growth: float, period: int) -> float:
    """Standard error of a sum of blocks smaller than the period; 0 where every allocation is recorded."""
    return 0.0 if period <= 1 else math.sqrt(abs(growth) * period)


def _with_error(error: float) -> str:
    return f" +-{text_of(2 * error)}" if error >= 0.5 else ""


def _is_ours(site: Any) -> bool:
    """Whether this package itself allocated it, not the code that it calls."""
    return bool(site.stack) and site.stack[0].file.startswith(_HERE)


def _place(file: str, line: int) -> str:
    """The path relative to the current folder if that is shorter."""
    here = os.path.relpath(file) if os.path.isabs(file) else file
    return f"{here if len(here) < len(file) else file}:{line}"
