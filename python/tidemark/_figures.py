"""The contents of a snapshot, and the comparison of two. All sizes are bytes, estimated from samples.

Each estimate has a standard error; two estimates differ if their difference is more than two of its standard
errors.
"""

import functools
import linecache
import sys
import sysconfig
from types import CodeType, FunctionType
from typing import Any, Callable, Dict, Iterable, List, NamedTuple, Optional, Tuple

#: Code of the interpreter and of installed packages.
INSTALLED = tuple(
    path.rstrip("/") + "/"
    for path in {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    if path
) + ("<frozen ",)
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


class Frame(NamedTuple):
    function: str
    file: str
    line: int


class Site(NamedTuple):
    """The figures of one call stack's allocations. ``stack``: innermost frame first."""

    stack: Tuple[Frame, ...]
    live_bytes: float
    live_objects: float
    allocated_bytes: float
    error_bytes: float
    #: At the moment with the most live memory.
    peak_bytes: float = 0.0
    peak_error_bytes: float = 0.0
    #: Whether Python's allocator made them; False: a library or the interpreter called malloc.
    is_python: bool = False


class Line(NamedTuple):
    """The figures of one source line: of its allocations and those of the libraries that it calls."""

    file: str
    line: int
    live_bytes: float
    allocated_bytes: float
    error_bytes: float
    #: At the moment with the most live memory.
    peak_bytes: float = 0.0
    #: The part of ``allocated_bytes`` that Python's own allocator provided.
    python_bytes: float = 0.0

    def __str__(self) -> str:
        return f"{place_of(self)}  {text_of(self.live_bytes)}  {source_of(self.file, self.line)}"


class Snapshot:
    """The memory that was allocated since recording began and was live at one moment."""

    def __init__(self, sites: Iterable[Site], rss_bytes: int, recording: int = 0) -> None:
        """``recording``: its number in this process; snapshots of two recordings cannot be compared."""
        self.recording = recording
        self.sites: List[Site] = sorted(sites, key=lambda site: -site.live_bytes)
        self.rss_bytes = rss_bytes

    @property
    def live_bytes(self) -> float:
        return sum(site.live_bytes for site in self.sites)

    @property
    def error_bytes(self) -> float:
        return _root_of_squares(site.error_bytes for site in self.sites)

    @property
    def allocated_bytes(self) -> float:
        return sum(site.allocated_bytes for site in self.sites)

    def lines(self) -> List[Line]:
        """By the innermost line of the program's own code, largest live bytes first."""
        return lines_of(self.sites, own_frame)

    def top(self, count: int = 10) -> List[Line]:
        return self.lines()[:count]

    def __str__(self) -> str:
        head = f"live {text_of(self.live_bytes)} +-{text_of(2 * self.error_bytes)}, RSS {text_of(self.rss_bytes)}"
        return "\n".join([head, *(f"  {line}" for line in self.top())])

    def __repr__(self) -> str:
        return f"<tidemark snapshot: live {text_of(self.live_bytes)}, {len(self.sites)} sites>"


class MeasuredLine(NamedTuple):
    """What one source line did while a block was measured."""

    file: str
    line: int
    #: Live bytes at the end less those at the beginning, and the standard error.
    growth_bytes: float
    error_bytes: float
    allocated_bytes: float
    #: Live bytes at the moment with the most live memory; None if the recording began before the block.
    peak_bytes: Optional[float]
    #: Share of ``allocated_bytes`` that Python's own allocator provided, 0 to 1. The rest is native.
    python_share: float
    #: How often the line was executed; None if that was not counted.
    executions: Optional[int] = None

    @property
    def growth_each_bytes(self) -> Optional[float]:
        """Growth per execution; None if executions were not counted."""
        return self.growth_bytes / self.executions if self.executions else None


class Change(NamedTuple):
    """One line in two snapshots. ``is_noise``: the change is within two standard errors of zero."""

    file: str
    line: int
    growth_bytes: float
    error_bytes: float
    is_noise: bool

    def __str__(self) -> str:
        mark = "  (noise)" if self.is_noise else ""
        return (
            f"{signed_text_of(self.growth_bytes)} +-{text_of(2 * self.error_bytes)}  "
            f"{described(self)}{mark}"
        )


class Comparison:
    """The changes between two snapshots: first those beyond their error, the largest first."""

    def __init__(self, before: Snapshot, after: Snapshot) -> None:
        for each in (before, after):
            if not isinstance(each, Snapshot):
                raise TypeError(
                    f"tidemark.compare takes two snapshots, each from tidemark.snapshot(), not {type(each).__name__}"
                )
        if before.recording != after.recording:
            raise ValueError("the snapshots are of two recordings: the second knows nothing of what the first saw allocated")
        old = {(line.file, line.line): line for line in before.lines()}
        new = {(line.file, line.line): line for line in after.lines()}
        changes = []
        for file, number in old.keys() | new.keys():
            nothing = Line(file, number, 0.0, 0.0, 0.0)
            was, now = old.get((file, number), nothing), new.get((file, number), nothing)
            growth = now.live_bytes - was.live_bytes
            error = _root_of_squares((was.error_bytes, now.error_bytes))
            if growth:
                changes.append(Change(file, number, growth, error, abs(growth) <= 2 * error))
        self.changes: List[Change] = sorted(changes, key=lambda change: (change.is_noise, -abs(change.growth_bytes)))
        self.growth_bytes = after.live_bytes - before.live_bytes
        self.error_bytes = _root_of_squares((before.error_bytes, after.error_bytes))
        self.rss_growth_bytes = after.rss_bytes - before.rss_bytes

    def top(self, count: int = 10) -> List[Change]:
        return self.changes[:count]

    def __str__(self) -> str:
        head = (
            f"live {signed_text_of(self.growth_bytes)} +-{text_of(2 * self.error_bytes)}, "
            f"RSS {signed_text_of(self.rss_growth_bytes)}"
        )
        return "\n".join([head, *(f"  {change}" for change in self.top())])


def is_installed(file: str) -> bool:
    """Code of the interpreter and of packages, also of those in a user's folder or on PYTHONPATH."""
    return file.startswith(INSTALLED) or "/site-packages/" in file or "/dist-packages/" in file


def own_frame(stack: Tuple[Frame, ...]) -> Optional[Frame]:
    """The innermost frame outside the standard library and installed packages, else the innermost; None for an empty
    stack."""
    own = (frame for frame in stack if not is_installed(frame.file))
    return next(own, stack[0] if stack else None)


def lines_of(sites: Iterable[Site], line_of: Callable[[Tuple[Frame, ...]], Optional[Frame]]) -> List[Line]:
    """Sites added up by the frame that ``line_of`` picks from a stack; None leaves a site out."""
    sums: Dict[Tuple[str, int], List[float]] = {}
    for site in sites:
        frame = line_of(site.stack)
        if frame is not None:
            row = sums.setdefault((frame.file, frame.line), [0.0, 0.0, 0.0, 0.0, 0.0])
            row[0] += site.live_bytes
            row[1] += site.allocated_bytes
            row[2] += site.error_bytes**2
            row[3] += site.peak_bytes
            row[4] += site.allocated_bytes if site.is_python else 0.0
    lines = [
        Line(*place, live, allocated, error**0.5, peak, python)
        for place, (live, allocated, error, peak, python) in sums.items()
    ]
    return sorted(lines, key=lambda line: (-line.live_bytes, -line.allocated_bytes))


def measured_lines(
    before: Snapshot, after: Snapshot, line_of: Callable[[Tuple[Frame, ...]], Optional[Frame]], knows_peak: bool
) -> List[MeasuredLine]:
    """What happened between two snapshots, by the frame that ``line_of`` picks from a stack, the largest first."""
    old = {(line.file, line.line): line for line in lines_of(before.sites, line_of)}
    measured = []
    for line in lines_of(after.sites, line_of):
        was = old.get((line.file, line.line), Line(line.file, line.line, 0.0, 0.0, 0.0))
        growth, allocated = line.live_bytes - was.live_bytes, line.allocated_bytes - was.allocated_bytes
        if growth or allocated > 0:
            measured.append(
                MeasuredLine(
                    line.file,
                    line.line,
                    growth,
                    _root_of_squares((was.error_bytes, line.error_bytes)),
                    max(0.0, allocated),
                    line.peak_bytes if knows_peak else None,
                    (line.python_bytes - was.python_bytes) / allocated if allocated > 0 else 0.0,
                )
            )
    return sorted(measured, key=lambda line: (-max(line.growth_bytes, line.peak_bytes or 0), -line.allocated_bytes))


def _root_of_squares(values: Iterable[float]) -> float:
    return float(sum(value * value for value in values) ** 0.5)


def name_of(file: str) -> str:
    """A cell of IPython as ``In[3]``, because IPython compiles it under the name of a temporary file; else the path."""
    shell_of = getattr(sys.modules.get("IPython"), "get_ipython", None)
    compiler = None if shell_of is None else getattr(shell_of(), "compile", None)
    format_name = getattr(compiler, "format_code_name", None)
    known = None if format_name is None else format_name(file)
    return str(known[1]) if known else file


def place_of(line: Any) -> str:
    """Of anything with ``file`` and ``line``."""
    return f"{name_of(line.file)}:{line.line}"


def code_of(value: Any) -> Optional[CodeType]:
    """Of functions, methods, classes (``__init__``), wrapped and partial functions, callable instances; else None."""
    for _ in range(100):
        value = getattr(value, "__func__", value)
        if isinstance(value, FunctionType):
            wrapped = getattr(value, "__wrapped__", None)
            if wrapped is None:
                return value.__code__
            value = wrapped
        elif isinstance(value, type):
            value = value.__init__
        elif isinstance(value, functools.partial):
            value = value.func
        else:
            value = getattr(value, "__wrapped__", None) or getattr(type(value), "__call__", None)
    return None


def function_name(code: CodeType) -> str:
    """With its class from CPython 3.11 on: ``Parser.feed``."""
    return str(getattr(code, "co_qualname", code.co_name))


def described(line: Any) -> str:
    """The place of a line and its source."""
    return f"{place_of(line)}  {source_of(line.file, line.line)}".rstrip()


def source_of(file: str, line: int) -> str:
    return linecache.getline(file, line).strip()


def text_of(size: float) -> str:
    """Bytes with three digits: "7.63 MiB"."""
    power = 0
    while abs(size) >= 1000 and power < len(_UNITS) - 1:
        size /= 1024
        power += 1
    digits = 0 if power == 0 or abs(size) >= 100 else 1 if abs(size) >= 10 else 2
    return f"{size:.{digits}f} {_UNITS[power]}"


def signed_text_of(size: float) -> str:
    return ("+" if size >= 0 else "") + text_of(size)


def table_rows(
    lines: List[MeasuredLine], describe: Callable[[MeasuredLine], str] = described, first: str = "growth"
) -> List[str]:
    """The lines as a table of text, with a heading; empty for no lines. ``describe``: the last column; ``first``: the
    title of the first."""
    if not lines:
        return []
    counted = any(line.executions is not None for line in lines)
    cells = [(first, "+-", "at peak", "allocated", "python", *(("times", "each") if counted else ()), "line")]
    for line in lines:
        peak = "" if line.peak_bytes is None else text_of(line.peak_bytes)
        share = f"{line.python_share:.0%}" if line.allocated_bytes else ""
        error = text_of(2 * line.error_bytes)
        growth = signed_text_of(line.growth_bytes) if first == "growth" else text_of(line.growth_bytes)
        figures = (growth, error, peak, text_of(line.allocated_bytes), share)
        cells.append((*figures, *(execution_cells(line) if counted else ()), describe(line)))
    widths = [max(len(row[column]) for row in cells) for column in range(len(cells[0]) - 1)]
    return ["  " + "  ".join([*(text.rjust(width) for text, width in zip(row, widths)), row[-1]]) for row in cells]


def execution_cells(line: MeasuredLine) -> Tuple[str, str]:
    """How often the line was executed, and its growth per execution; empty if that is unknown."""
    each = line.growth_each_bytes
    return ("" if line.executions is None else str(line.executions), "" if each is None else signed_text_of(each))


def with_executions(lines: List[MeasuredLine], executions: Optional[Dict[Tuple[str, int], int]]) -> List[MeasuredLine]:
    if executions is None:
        return lines
    return [line._replace(executions=executions.get((line.file, line.line))) for line in lines]
