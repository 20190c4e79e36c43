"""Memory limits for unittest::

    from tidemark.testing import MemoryLimits, limit_growth, limit_memory, no_leaks

    class LoaderTest(MemoryLimits, unittest.TestCase):
        memory_limit = "64 MiB"             # for every test in the class without its own limit

        @limit_memory("24 MiB")
        def test_load(self): ...

        @no_leaks
        def test_parse(self): ...           # is repeated: no call may leave anything behind

``setUp`` and ``tearDown`` do not count. ``TIDEMARK_LIMITS=off`` in the environment switches the limits off.
"""

import functools
import inspect
import os
import shlex
import sys
from typing import Any, Callable, Dict, Optional, TypeVar, Union

from ._limits import LimitError, Limits, Measured, parse_calls, parse_growth, parse_period, parse_size

__unittest = True  # unittest leaves frames of such modules out of tracebacks
__all__ = ["MemoryLimits", "limit_growth", "limit_memory", "no_leaks"]

_Test = TypeVar("_Test", bound=Callable[..., Any])
_OWN = "__tidemark_limits__"


def limit_memory(size: Union[int, str]) -> Callable[[_Test], _Test]:
    """Limits the peak of live memory, as in "24 MiB". Raises ValueError for an invalid size."""
    return _with(memory=parse_size(size, "limit_memory"))


def limit_growth(rate: str, warmup: int = 2, calls: int = 5) -> Callable[[_Test], _Test]:
    """Limits the memory that each call of the test leaves behind, as in "1 KiB/call". The test is repeated."""
    return _with(growth=parse_growth(rate, "limit_growth", warmup, calls))


def no_leaks(test: Optional[_Test] = None, *, warmup: int = 2, calls: int = 5) -> Any:
    """``@no_leaks`` or ``@no_leaks(warmup=10)``: no call of the test may leave anything behind."""
    decorate = _with(leaks=parse_calls(None, "no_leaks", warmup, calls))
    return decorate if test is None else decorate(test)


def _with(**limits: Any) -> Callable[[_Test], _Test]:
    def decorate(test: _Test) -> _Test:
        own: Dict[str, Any] = {**getattr(test, _OWN, {}), **limits}
        setattr(test, _OWN, own)
        return test

    return decorate


class MemoryLimits:
    """A base class; name it before ``unittest.TestCase`` or ``IsolatedAsyncioTestCase``."""

    #: The limit for every test of the class without its own.
    memory_limit: Union[int, str, None] = None
    growth_limit: Optional[str] = None
    memory_must_not_leak = False
    #: Bytes between two samples; 1 records every allocation. None: 4K for a limit on memory, else 1.
    memory_period: Union[int, str, None] = None

    def run(self, result: Any = None) -> Any:
        name = self._testMethodName  # type: ignore[attr-defined]
        test = getattr(self, name, None)
        if test is None or os.environ.get("TIDEMARK_LIMITS", "") == "off":
            return super().run(result)  # type: ignore[misc]
        problem = ""
        try:
            limits = self._limits_of(test)
            period = None if self.memory_period is None else parse_period(self.memory_period, "memory_period")
        except LimitError as error:
            problem = str(error)
        if problem:  # outside of the handler, or the traceback would show both
            return self._run_as(_failing(problem, _failure_of(self, result)), result)
        if not limits:
            return super().run(result)  # type: ignore[misc]
        measured = Measured(limits, period)
        report = functools.partial(_report, measured, _next_command(self, result), _failure_of(self, result))
        return self._run_as(_measured(test, measured, report), result)

    def _run_as(self, test: Callable[..., Any], result: Any) -> Any:
        own, name = vars(self), self._testMethodName  # type: ignore[attr-defined]
        before = {name: own[name]} if name in own else {}  # pytest puts a method there, and removes it itself
        setattr(self, name, test)
        try:
            return super().run(result)  # type: ignore[misc]
        finally:
            own.pop(name, None)
            own.update(before)

    def _limits_of(self, test: Any) -> Limits:
        own = getattr(test, _OWN, {})
        memory, growth = self.memory_limit, self.growth_limit
        return Limits(
            own.get("memory", None if memory is None else parse_size(memory, "memory_limit")),
            own.get("growth", None if growth is None else parse_growth(growth, "growth_limit")),
            own.get("leaks", parse_calls(None, "memory_must_not_leak") if self.memory_must_not_leak else None),
        )


def _failure_of(case: Any, result: Any) -> Callable[[str], BaseException]:
    """A failure of the runner's own type. pytest's is shown without a traceback."""
    pytest = sys.modules.get("pytest")
    if pytest is not None and isinstance(result, pytest.Item):
        return functools.partial(pytest.fail.Exception, pytrace=False)
    return case.failureException


def _next_command(case: Any, result: Any) -> str:
    if hasattr(result, "nodeid"):
        return f"tidemark run -m pytest {shlex.quote(result.nodeid)}"
    main = getattr(sys.modules.get("__main__"), "__file__", None) or ""
    is_script = os.path.isfile(main) and os.path.basename(main) != "__main__.py"
    return f"tidemark run {os.path.relpath(main)}" if is_script else f"tidemark run -m unittest {case.id()}"


def _failing(message: str, failure: Callable[[str], BaseException]) -> Callable[[], None]:
    def test() -> None:
        raise failure(f"tidemark: {message}")

    return test


def _measured(test: Callable[..., Any], measured: Measured, report: Callable[[], None]) -> Callable[..., Any]:
    if inspect.iscoroutinefunction(test):

        @functools.wraps(test)
        async def call_async() -> None:
            with measured:
                for _ in measured.calls():
                    await test()
            report()

        return call_async

    @functools.wraps(test)
    def call() -> None:
        with measured:
            for _ in measured.calls():
                test()
        report()

    return call


def _report(measured: Measured, command: str, failure: Callable[[str], BaseException]) -> None:
    findings = measured.findings()
    if findings:
        raise failure("\n" + "\n".join(finding.text(measured.sampling, command) for finding in findings))
