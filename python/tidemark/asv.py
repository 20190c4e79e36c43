"""Memory benchmarks for asv (airspeed velocity), as ``track_`` benchmarks::

    from tidemark.asv import bytes_per_call, peak_bytes

    class Loader:
        def setup(self):
            self.text = make_text()         # does not count

        @peak_bytes
        def track_load_peak(self):          # the peak of live memory, including native memory and child processes
            load(self.text)

        @bytes_per_call(calls=20)
        def track_load_growth(self):        # the memory that each call leaves live
            load(self.text)

asv finds new kinds of benchmarks only in distributions whose name begins with ``asv_bench``, so there is no prefix of
its own (``tidemark_...``): the benchmark must be called ``track_...``. asv has no limits either; ``asv continuous``
compares two commits.
"""

import functools
from typing import Any, Callable, Optional, TypeVar

from ._limits import Growth, Limits, Measured, parse_calls

__all__ = ["bytes_per_call", "peak_bytes"]

_Benchmark = TypeVar("_Benchmark", bound=Callable[..., Any])


def peak_bytes(benchmark: _Benchmark) -> _Benchmark:
    """The benchmark's result is the peak of live memory while it ran, in bytes."""

    @functools.wraps(benchmark)
    def tracked(*arguments: Any) -> int:
        return _measure(benchmark, arguments, None).peak_bytes or 0

    return _of_bytes(tracked)


def bytes_per_call(
    benchmark: Optional[_Benchmark] = None, *, warmup: int = 2, calls: int = 20
) -> Any:
    """The benchmark's result is the memory that each of ``calls`` calls leaves live, in bytes, after ``warmup``
    others."""
    growth = parse_calls(None, "bytes_per_call", warmup, calls)

    def decorate(function: _Benchmark) -> _Benchmark:
        @functools.wraps(function)
        def tracked(*arguments: Any) -> float:
            return _measure(function, arguments, growth).bytes_per_call or 0.0

        return _of_bytes(tracked)

    return decorate if benchmark is None else decorate(benchmark)


def _of_bytes(tracked: Any) -> Any:
    tracked.unit = "bytes"
    return tracked


def _measure(benchmark: Callable[..., Any], arguments: Any, growth: Optional[Growth]) -> Measured:
    measured = Measured(Limits(), period=1)
    with measured:
        for _ in measured.rate_calls(growth) if growth else measured.calls():
            benchmark(*arguments)
    return measured
