"""``pytest --tidemark``: memory limits of tests, by markers and by the configuration.

::

    @pytest.mark.limit_memory("24 MiB")             # the limit on the peak of live memory
    @pytest.mark.limit_growth("1 KiB/call")         # the limit on the memory that each call leaves behind
    @pytest.mark.no_leaks                           # no call may leave anything behind

Memory held by fixtures and set-up does not count. Without ``--tidemark`` the markers do nothing, except for one
warning.
"""

import functools
import inspect
import os
import re
import shlex
import unittest
from typing import Any, Callable, Dict, Generator, List, Optional, Tuple

import pytest

from ._figures import text_of
from ._limits import (
    Finding,
    LimitError,
    Limits,
    Measured,
    parse_calls,
    parse_growth,
    parse_period,
    parse_size,
    sampling_text,
)
from ._pytest_calls import Calls

_MARKERS = {
    "limit_memory": "limit_memory(size): fail if more is live at a time while the test runs, as in '24 MiB'",
    "limit_growth": "limit_growth(rate, warmup=2, calls=5): repeat the test; fail if each call leaves more behind, "
    "as in '1 KiB/call'",
    "no_leaks": "no_leaks(warmup=2, calls=5): repeat the test; fail if each call leaves something behind",
}
_PEAK = "tidemark_peak_bytes"
_PERIOD = "tidemark_period_bytes"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("tidemark", "memory limits (Tidemark)")
    group.addoption("--tidemark", action="store_true", help="check the memory limits of tests")
    group.addoption(
        "--tidemark-period",
        metavar="BYTES",
        help="bytes between two samples, as in 4K: coarser is faster (1: every allocation, exact; default 4K, and 1 "
        "for growth and leaks)",
    )
    parser.addini("tidemark_limit_memory", "limit_memory of tests without their own")
    parser.addini("tidemark_limit_growth", "limit_growth of tests without their own")
    parser.addini("tidemark_no_leaks", "no_leaks for tests without their own", type="bool", default=False)
    parser.addini("tidemark_period", "as --tidemark-period")


def pytest_configure(config: pytest.Config) -> None:
    for line in _MARKERS.values():
        config.addinivalue_line("markers", line)
    if not config.getoption("--tidemark"):
        config.pluginmanager.register(_Inactive(), "tidemark-inactive")
        return
    try:
        limits = _LimitPlugin(config)
        is_recorded = Measured.agent().is_armed()
    except (LimitError, RuntimeError) as error:
        raise pytest.UsageError(f"--tidemark: {error}") from None
    if is_recorded:
        config.issue_config_time_warning(
            pytest.PytestWarning("`tidemark run` records this process already: --tidemark checks no limits"), 2
        )
        return
    config.pluginmanager.register(limits, "tidemark-limits")


class _Inactive:
    """Warns once that markers have no effect; with several workers, the first one does."""

    def pytest_collection_modifyitems(self, config: pytest.Config, items: List[pytest.Item]) -> None:
        worker = getattr(config, "workerinput", {}).get("workerid", "gw0")
        marked = [item for item in items if any(item.get_closest_marker(name) for name in _MARKERS)]
        if marked and worker == "gw0":
            tests = "1 test has" if len(marked) == 1 else f"{len(marked)} tests have"
            config.issue_config_time_warning(
                pytest.PytestWarning(f"{tests} memory limits that are not checked: add --tidemark"), 2
            )


class _LimitPlugin:
    def __init__(self, config: pytest.Config) -> None:
        self._period = _period(config)
        self._defaults = _defaults(config)
        self._peaks: Dict[str, Tuple[int, int]] = {}

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        problem = ""
        try:
            _limits_of(item, self._defaults)
        except LimitError as error:
            problem = str(error)
        if problem:  # outside of the handler, or pytest would show both
            pytest.fail(f"tidemark: {problem}", pytrace=False)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, None]:
        limits = _limits_of(item, self._defaults)
        if not limits:
            yield
            return
        measured = Measured(limits, self._period)
        if not isinstance(item, pytest.Function):  # a doctest, or an item of another plugin
            setattr(item, "runtest", _measured(_again(item), item, measured))
            yield
            return
        plain = item.obj
        item.obj = _measured(plain, item, measured)
        instance = getattr(item, "instance", None)
        is_case = isinstance(instance, unittest.TestCase)
        if is_case:
            # The attribute that unittest looks up, for asynchronous methods, too.
            setattr(instance, item.name, item.obj)
        try:
            yield
        finally:
            item.obj = plain
            if is_case:
                vars(instance).pop(item.name, None)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        properties = dict(report.user_properties)
        if report.when == "call" and _PEAK in properties:
            self._peaks[report.nodeid] = (int(str(properties[_PEAK])), int(str(properties[_PERIOD])))

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if not self._peaks:
            return
        nodeid, (peak, _) = max(self._peaks.items(), key=lambda row: row[1][0])
        periods = [period for _, period in self._peaks.values()]
        terminalreporter.section("memory (tidemark)")
        count = len(self._peaks)
        terminalreporter.write_line(
            f"{count} {'test' if count == 1 else 'tests'} measured; most in {nodeid}: {text_of(peak)} live"
        )
        terminalreporter.write_line(sampling_text(min(periods), max(periods)))


def _period(config: pytest.Config) -> Optional[int]:
    for name, given in (
        ("--tidemark-period", config.getoption("--tidemark-period")),
        ("tidemark_period", config.getini("tidemark_period")),
    ):
        if given:
            return parse_period(given, name)
    return None


def _defaults(config: pytest.Config) -> Limits:
    memory, growth = config.getini("tidemark_limit_memory"), config.getini("tidemark_limit_growth")
    try:
        must_not_leak = config.getini("tidemark_no_leaks")
    except (ValueError, pytest.UsageError) as error:
        raise LimitError(f"tidemark_no_leaks takes true or false: {error}") from None
    return Limits(
        parse_size(memory, "tidemark_limit_memory") if memory else None,
        parse_growth(growth, "tidemark_limit_growth") if growth else None,
        parse_calls(None, "tidemark_no_leaks") if must_not_leak else None,
    )


def _limits_of(item: pytest.Item, defaults: Limits) -> Limits:
    """The limits of the closest marker of each kind. Raises LimitError for an invalid one."""
    return Limits(
        _from_marker(item, "limit_memory", defaults.memory, _memory_limit),
        _from_marker(item, "limit_growth", defaults.growth, _growth_limit),
        _from_marker(item, "no_leaks", defaults.leaks, _leak_limit),
    )


def _from_marker(item: pytest.Item, name: str, default: Any, parse: Callable[..., Any]) -> Any:
    # A parameter is closer than its function, which pytest puts first.
    of_parameter = (mark for mark in getattr(getattr(item, "callspec", None), "marks", ()) if mark.name == name)
    marker = next(iter(of_parameter), item.get_closest_marker(name))
    if marker is None:
        return default
    if marker.args == (None,) and not marker.kwargs:
        return None  # lifts the default
    try:
        return parse(*marker.args, **marker.kwargs)
    except TypeError:
        given = ", ".join([*map(repr, marker.args), *(f"{key}={value!r}" for key, value in marker.kwargs.items())])
        raise LimitError(f"write {_MARKERS[name].split(':')[0]}, not {name}({given})"[:300]) from None


def _memory_limit(size: Any) -> int:
    return parse_size(size, "limit_memory")


def _growth_limit(rate: Any, warmup: Any = 2, calls: Any = 5) -> Any:
    return parse_growth(rate, "limit_growth", warmup, calls)


def _leak_limit(warmup: Any = 2, calls: Any = 5) -> Any:
    return parse_calls(None, "no_leaks", warmup, calls)


def _again(item: Any) -> Callable[[], None]:
    """Runs an item that is not a function, as often as needed. A doctest clears its names at its end."""
    run, doctest = item.runtest, getattr(item, "dtest", None)
    names = dict(getattr(doctest, "globs", {}))

    def run_again() -> None:
        if doctest is not None:
            doctest.globs.update(names)
        run()

    return run_again


def _measured(body: Callable[..., Any], item: pytest.Item, measured: Measured) -> Callable[..., Any]:
    """The body, called as often as the limits need; it fails if one of them was exceeded."""
    limits = " and ".join(
        name for name, limit in (("limit_growth", measured.limits.growth), ("no_leaks", measured.limits.leaks)) if limit
    )
    if inspect.iscoroutinefunction(body):

        @functools.wraps(body)
        async def call_async(*arguments: Any, **keywords: Any) -> Any:
            result, calls = None, Calls(item, limits)
            with measured:
                for _ in measured.calls():
                    with calls:
                        result = await body(*arguments, **keywords)
            _report(item, measured)
            return result

        return call_async

    @functools.wraps(body)
    def call(*arguments: Any, **keywords: Any) -> Any:
        result, calls = None, Calls(item, limits)
        with measured:
            for _ in measured.calls():
                with calls:
                    result = body(*arguments, **keywords)
        _report(item, measured)
        return result

    return call


def _report(item: pytest.Item, measured: Measured) -> None:
    if measured.peak_bytes is not None:
        item.user_properties += [(_PEAK, measured.peak_bytes), (_PERIOD, measured.coarsest_period)]
    findings = measured.findings()
    if findings:
        pytest.fail(_findings_text(findings, measured, item), pytrace=False)


def _findings_text(findings: List[Finding], measured: Measured, item: pytest.Item) -> str:
    doctest = getattr(item, "dtest", None)
    words = "--doctest-modules " if doctest is not None and item.path.suffix == ".py" else ""
    next_command = f"tidemark run -m pytest {words}{shlex.quote(item.nodeid)}"
    text = "\n".join(finding.text(measured.sampling, next_command) for finding in findings)
    return text if doctest is None else _EXAMPLE.sub(functools.partial(_example_text, doctest), text)


#: "<doctest app.load[2]>:1", the name that doctest gives the code of an example.
_EXAMPLE = re.compile(r"<doctest [^\n]+\[(\d+)\]>:(\d+)[ ]*")


def _example_text(doctest: Any, match: "re.Match[str]") -> str:
    """The file and line of an item."""
    example = doctest.examples[int(match.group(1))]
    offset = int(match.group(2)) - 1
    lines = example.source.splitlines()
    source = lines[offset].strip() if offset < len(lines) else ""
    path = os.path.relpath(doctest.filename)
    place = f"{path}:{doctest.lineno + example.lineno + 1 + offset}" if doctest.lineno is not None else path
    return f"{place}  {source}"
