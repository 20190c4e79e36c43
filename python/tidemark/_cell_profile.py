"""What ``%%tidemark`` and ``%tidemark_line`` show: a page for notebooks, text for terminals.

The page is HTML without scripts or outside references, so that it stays readable in a saved notebook.
"""

import linecache
import os
import sys
from html import escape
from types import CodeType
from typing import Any, Callable, Dict, List, Optional, Tuple

from ._figures import (
    INSTALLED,
    Frame,
    MeasuredLine,
    execution_cells,
    function_name,
    is_installed,
    name_of,
    signed_text_of,
    table_rows,
    text_of,
)

_STYLE = (
    "font:13px/1.45 system-ui,sans-serif;max-width:62em;border:1px solid #8886;border-radius:6px;padding:.6em .9em;margin:.3em 0"
)
_NUMBER = "text-align:right;padding:0 .6em;white-space:nowrap;font-variant-numeric:tabular-nums;background:none"
_CODE = "text-align:left;padding:0 .4em;white-space:pre;font-family:ui-monospace,monospace;background:none"
_LONGEST_SOURCE = 300
_LONGEST_LINE = 160

LineOf = Callable[[Tuple[Frame, ...]], Optional[Frame]]


class _Shown:
    """The parts that both profiles share."""

    title = ""

    def __init__(self, measured: Any, error: Optional[BaseException]) -> None:
        self.measurement = measured.measurement
        self.device = (measured.device.growth_bytes, measured.device.peak_bytes)
        self.ended = "" if error is None else _ending_of(error)
        self._names: Dict[str, str] = {}
        self._launcher = os.path.realpath(sys.argv[0])
        # The names are kept because the numbers of cells change when they run again.
        for line in self.measurement.lines(self._own_frame):
            self._name(line.file)

    def _own_frame(self, stack: Tuple[Frame, ...]) -> Optional[Frame]:
        """The innermost frame of the user's code. IPython's own work, which has none, is left out."""
        return next((frame for frame in stack if self._is_users(frame.file)), None)

    def _is_users(self, file: str) -> bool:
        return not is_installed(file) and file != "<string>" and os.path.realpath(file) != self._launcher

    def _name(self, file: str) -> None:
        self._names[file] = _short(name_of(file))

    def place_of(self, line: MeasuredLine) -> str:
        return f"{self._names.get(line.file, line.file)}:{line.line}"

    def source_of(self, line: MeasuredLine) -> str:
        return linecache.getline(line.file, line.line).rstrip()

    def head(self) -> str:
        """One line: peak, growth, allocations, seconds."""
        measurement = self.measurement
        parts = [f"peak RSS {text_of(measurement.peak_rss_bytes)} ({signed_text_of(measurement.peak_growth_bytes)})"]
        if measurement.growth_bytes is not None:
            parts.append(f"growth {signed_text_of(measurement.growth_bytes)} +-{text_of(2 * measurement.error_bytes)}")
            parts.append(f"allocated {text_of(measurement.allocated_bytes)}")
        else:
            parts.append(f"RSS {signed_text_of(measurement.rss_growth_bytes)}")
        growth, peak = self.device
        if growth is not None:
            parts.append(f"GPU {signed_text_of(growth)}" + ("" if peak is None else f", peak {text_of(peak)}"))
        return ", ".join([*parts, f"{measurement.seconds:.3g} s"])

    def notes(self) -> List[str]:
        notes = [f"The code ended with {self.ended}."] if self.ended else []
        if self.measurement.problem:
            notes.append(f"{self.measurement.problem[0].upper()}{self.measurement.problem[1:]}")
        if any(line.peak_bytes is None for line in self.measurement.lines()):
            notes.append("The process was recorded before, so the peak by line is unknown.")
        return notes

    def tables(self) -> List[Tuple[str, List[MeasuredLine]]]:
        raise NotImplementedError

    def __repr__(self) -> str:
        rows = [f"tidemark {self.title}: {self.head()}", *self.notes()]
        for title, lines in self.tables():
            table = table_rows(lines, lambda line: f"{self.place_of(line)}  {self.source_of(line).strip()}".rstrip())
            rows += [title, *table] if table else []
        return "\n".join(rows)

    def _repr_html_(self) -> str:
        notes = "".join(f"<div>{escape(note)}</div>" for note in self.notes())
        tables = "".join(self._table(title, lines) for title, lines in self.tables() if lines)
        head = self.head().replace("+-", "\N{PLUS-MINUS SIGN}")
        return (
            f'<div class="tidemark" style="{_STYLE}"><div><b>Tidemark</b> {escape(self.title)}: {escape(head)}</div>'
            f"{notes}{tables}</div>"
        )

    def _table(self, title: str, lines: List[MeasuredLine]) -> str:
        largest = max((_size(line) for line in lines), default=0) or 1
        counted = any(line.executions is not None for line in lines)
        times = ("times", "each") if counted else ()
        headings = ("growth", "at peak", "allocated", "python", *times, "", "line", "")
        head = "".join(f'<th style="{_NUMBER};font-weight:600">{heading}</th>' for heading in headings)
        rows = "".join(self._row(line, largest, counted) for line in lines)
        return (
            f'<div style="margin-top:.5em">{escape(title)}</div><div style="overflow-x:auto">'
            f'<table style="border-collapse:collapse;font-size:12px;margin:0"><tr>{head}</tr>{rows}</table></div>'
        )

    def _row(self, line: MeasuredLine, largest: float, counted: bool) -> str:
        measured = line.allocated_bytes > 0 or line.growth_bytes != 0
        peak = "" if line.peak_bytes is None else text_of(line.peak_bytes)
        error = f' title="&plusmn;{text_of(2 * line.error_bytes)}"'
        cells = (
            (signed_text_of(line.growth_bytes), peak, text_of(line.allocated_bytes), f"{line.python_share:.0%}")
            if measured
            else ("", "", "", "")
        )
        cells = (*cells, *(execution_cells(line) if counted else ()))
        numbers = "".join(f'<td style="{_NUMBER}"{error if measured else ""}>{cell}</td>' for cell in cells)
        width = round(100 * _size(line) / largest)
        bar = f'<div style="width:{width}%;height:.8em;background:#3b82c4;border-radius:2px"></div>' if width else ""
        source = self.source_of(line)[:_LONGEST_LINE]
        return (
            f'<tr>{numbers}<td style="width:80px;min-width:80px;padding:0;background:none">{bar}</td>'
            f'<td style="{_NUMBER}">{escape(self.place_of(line))}</td><td style="{_CODE}">{escape(source)}</td></tr>'
        )


def number_of_cell(shell: Any) -> int:
    """The number of the running cell, or of the last one. ``execution_count`` is raised at different moments."""
    return len(shell.user_ns.get("_ih", ())) - 1


class CellProfile(_Shown):
    """The profile of one cell: its lines, then the lines of other code that it ran."""

    def __init__(
        self,
        number: int,
        measured: Any,
        source: str,
        top: int,
        error: Optional[BaseException],
        file: Optional[str] = None,
    ) -> None:
        super().__init__(measured, error)
        self.title = f"In[{number}]"
        self._top = top
        if file is not None:
            self._name(file)
        for path in self.measurement.files():
            if path not in self._names:
                self._name(path)
        self._file = file or next((path for path, name in self._names.items() if name == self.title), None)
        self._source = _as_written(source, linecache.getlines(self._file) if self._file else [])

    def notes(self) -> List[str]:
        nothing = self.measurement.growth_bytes is not None and not self.lines()
        return [*super().notes(), "No allocation by a line of your code was sampled."] if nothing else super().notes()

    def lines(self) -> List[MeasuredLine]:
        """Your own code's lines, the largest first."""
        lines: List[MeasuredLine] = self.measurement.lines(self._own_frame)
        return lines

    def tables(self) -> List[Tuple[str, List[MeasuredLine]]]:
        within = self.measurement.lines(self._of_cell) if self._file else []
        others = [line for line in self.lines() if line.file != self._file][: self._top]
        return [
            ("The cell, with what the code called by each line allocates", sorted(within, key=lambda line: line.line)),
            ("Lines of other code", others),
        ]

    def _table(self, title: str, lines: List[MeasuredLine]) -> str:
        """The page shows the whole source of a cell of usual length, with bars beside the lines."""
        if lines and lines[0].file == self._file and len(self._source) <= _LONGEST_SOURCE:
            lines = _with_all(lines, range(1, len(self._source) + 1))
        return super()._table(title, lines)

    def source_of(self, line: MeasuredLine) -> str:
        is_written = line.file == self._file and line.line <= len(self._source)
        return self._source[line.line - 1] if is_written else super().source_of(line)

    def _of_cell(self, stack: Tuple[Frame, ...]) -> Optional[Frame]:
        return next((frame for frame in stack if frame.file == self._file), None)


class FunctionProfile(_Shown):
    """The profile of the lines of functions."""

    def __init__(
        self,
        measured: Any,
        codes: List[CodeType],
        lines_in: Callable[..., LineOf],
        error: Optional[BaseException],
    ) -> None:
        super().__init__(measured, error)
        self.title = ", ".join(map(function_name, codes))
        self._codes = codes
        self._lines_in = lines_in
        for code in codes:
            self._name(code.co_filename)

    def lines(self) -> List[MeasuredLine]:
        """The functions' lines, each with what the code that it calls allocates."""
        return [line for _, lines in self.tables() for line in lines]

    def tables(self) -> List[Tuple[str, List[MeasuredLine]]]:
        tables = []
        for code in self._codes:
            lines = self.measurement.lines(self._lines_in(code))
            place = f"{function_name(code)} ({self._names[code.co_filename]}:{code.co_firstlineno})"
            title = place if lines else f"{place}: no allocation in it was sampled"
            tables.append((title, sorted(lines, key=lambda line: line.line)))
        return tables

    def _table(self, title: str, lines: List[MeasuredLine]) -> str:
        code = next(code for code in self._codes if title.startswith(f"{function_name(code)} ("))
        return super()._table(title, _with_all(lines, _span(code)))

    def notes(self) -> List[str]:
        return [*super().notes(), *(title for title, lines in self.tables() if not lines)]


def _as_written(source: str, compiled: List[str]) -> List[str]:
    """The lines of a cell as its author wrote them, which IPython compiles in another form: ``%%tidemark``, ``!ls``.

    Falls back to the compiled lines where IPython joined some of them, because the numbers are theirs.
    """
    written = source.strip("\n").split("\n")
    lines = [line.rstrip("\n") for line in compiled]
    while lines and not lines[-1].strip():
        lines.pop()
    if len(lines) < len(written) and lines and lines[-1].startswith("get_ipython().run_cell_magic("):
        return written[: len(lines)]  # the rest is the text that another cell magic runs
    return written if len(written) == len(lines) or not lines else lines


def _with_all(lines: List[MeasuredLine], numbers: range) -> List[MeasuredLine]:
    """The lines in the order of the source, with those that did not allocate."""
    file = lines[0].file
    known = {line.line: line for line in lines}
    empty = (MeasuredLine(file, number, 0.0, 0.0, 0.0, None, 0.0) for number in numbers if number not in known)
    return sorted([*lines, *empty], key=lambda line: line.line)


def _span(code: CodeType) -> range:
    import inspect

    try:
        source, first = inspect.getsourcelines(code)
    except (OSError, TypeError, SyntaxError):
        return range(0)
    return range(first, first + len(source)) if len(source) <= _LONGEST_SOURCE else range(0)


def _size(line: MeasuredLine) -> float:
    return max(line.growth_bytes, line.peak_bytes or 0.0, 0.0)


def _ending_of(error: BaseException) -> str:
    return "an interrupt" if isinstance(error, KeyboardInterrupt) else type(error).__name__


def _short(file: str) -> str:
    """Without the folder of installed packages, or the current one."""
    try:
        folders = (*INSTALLED, os.getcwd() + os.sep)
    except OSError:  # the current folder was deleted
        folders = INSTALLED
    return next((file[len(folder) :] for folder in sorted(folders, key=len, reverse=True) if file.startswith(folder)), file)
