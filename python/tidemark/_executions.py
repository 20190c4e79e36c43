"""Counts how often each line of chosen functions is executed, to divide their growth by it.

Only the chosen functions are slowed: from CPython 3.12 on, their code objects alone have line events
(``sys.monitoring``). Before that, a trace function is called once for each call of any function, and for each line of
the chosen ones.
"""

import sys
import threading
from itertools import count
from types import CodeType, FrameType
from typing import Any, Dict, Iterable, List, Optional, Tuple

_TOOL_NAME = "tidemark"
#: Numbers of sys.monitoring that it reserves for no kind of tool.
_TOOL_NUMBERS = (3, 4)

Place = Tuple[str, int]


class LineCounter:
    """``begin()``, then ``end()``; ``problem`` is a sentence if another tool is in the way, and nothing is counted."""

    def __init__(self, codes: Iterable[CodeType]) -> None:
        self.problem = ""
        self._codes = {each for code in codes for each in _with_nested(code)}
        # A counter's step is atomic: threads lose no execution.
        self._counters: "Dict[Place, count[int]]" = {}
        self._tool: Optional[int] = None
        self._is_tracing = False

    def begin(self) -> None:
        monitoring: Any = getattr(sys, "monitoring", None)
        if monitoring is None:
            self._begin_tracing()
            return
        free = [number for number in _TOOL_NUMBERS if monitoring.get_tool(number) is None]
        if not free:
            self.problem = "executions are not counted: other tools use sys.monitoring"
            return
        self._tool = free[0]
        monitoring.use_tool_id(self._tool, _TOOL_NAME)
        monitoring.register_callback(self._tool, monitoring.events.LINE, self._line_begins)
        for code in self._codes:
            monitoring.set_local_events(self._tool, code, monitoring.events.LINE)

    def end(self) -> Dict[Place, int]:
        """By file and line."""
        if self._tool is not None:
            monitoring: Any = getattr(sys, "monitoring", None)
            for code in self._codes:
                monitoring.set_local_events(self._tool, code, 0)
            monitoring.register_callback(self._tool, monitoring.events.LINE, None)
            monitoring.free_tool_id(self._tool)
            self._tool = None
        if self._is_tracing:
            self._is_tracing = False
            sys.settrace(None)
            threading.settrace(None)  # type: ignore[arg-type]
        counters, self._counters = self._counters, {}
        return {place: next(counter) for place, counter in counters.items()}

    def _line_begins(self, code: CodeType, line: int) -> None:
        place = (code.co_filename, line)
        counter = self._counters.get(place)
        if counter is None:
            counter = self._counters.setdefault(place, count())
        next(counter)

    def _begin_tracing(self) -> None:
        if sys.gettrace() is not None:
            self.problem = "executions are not counted: a debugger or another tool traces this thread"
            return
        self._is_tracing = True
        threading.settrace(self._trace)
        sys.settrace(self._trace)

    def _trace(self, frame: FrameType, event: str, argument: Any) -> Any:
        return self._trace_line if frame.f_code in self._codes else None

    def _trace_line(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "line":
            self._line_begins(frame.f_code, frame.f_lineno)
        return self._trace_line


#: They run for each element; what counts is how often the line that contains them runs.
_WITHIN_A_LINE = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")


def _with_nested(code: CodeType) -> List[CodeType]:
    if code.co_name in _WITHIN_A_LINE:
        return []
    nested = [each for constant in code.co_consts if isinstance(constant, CodeType) for each in _with_nested(constant)]
    return [code, *nested]
