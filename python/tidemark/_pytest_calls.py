"""Repeated calls of one test: memory that pytest itself keeps for a call is not a leak of the test.

pytest keeps each log record, the output, warnings, properties and reports of subtests until the test has ended. A
limit on growth repeats the test within one set-up, so all of that would pile up: it would count as growth, fill the
report, and fail a test that expects to find only its own (``len(caplog.records) == 1``).
"""

import io
import warnings
from types import TracebackType
from typing import Any, List, Optional, Tuple, Type

import pytest


class Calls:
    """``with calls:`` around each call of the test. The first one is left to pytest. What pytest keeps of a later one is
    dropped at its end, unless that call fails: then the report shows it instead of the first.
    """

    def __init__(self, item: pytest.Item, limits: str) -> None:
        """``limits``: the names of the limits that repeat the test, for the report."""
        self._item = item
        self._limits = limits
        self._number = 0
        self._aside: Optional[_Aside] = None

    def __enter__(self) -> None:
        self._number += 1
        if self._number > 1:
            if self._number == 2:
                _keep_output(self._item)
                _mute_subtests(self._item)
            self._aside = _Aside(self._item)

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        aside, self._aside = self._aside, None
        if aside is None:
            return
        aside.end(is_dropped=kind is None)
        if kind is not None and not issubclass(kind, (pytest.skip.Exception, KeyboardInterrupt)):
            self._item.add_report_section(
                "call",
                "tidemark",
                f"This was call {self._number}: {self._limits} repeats the test, and fixtures are set up once for all calls.",
            )


class _Aside:
    """The data that pytest keeps of earlier calls, while another one runs."""

    def __init__(self, item: pytest.Item) -> None:
        self._item = item
        self._properties = len(item.user_properties)
        self._logs = [(handler, handler.records[:], handler.stream) for handler in _log_handlers(item)]
        for handler, _, _ in self._logs:
            handler.records.clear()  # the list itself is shared with caplog
            handler.stream = io.StringIO()
        self._patches = [(patch, _take_patches(patch, ([], [], None, None))) for patch in _monkeypatches(item)]
        recorders = _fixtures(item, pytest.WarningsRecorder)
        for recorder in recorders:
            recorder.clear()
        # Always, so that warnings that are shown once per place are shown again, as in the first call.
        self._warnings = warnings.catch_warnings(record=not recorders)
        self._warnings.__enter__()

    def end(self, is_dropped: bool) -> None:
        self._warnings.__exit__(None, None, None)
        for patch, before in self._patches:
            patch.undo()
            _take_patches(patch, before)
        if not is_dropped:
            return
        del self._item.user_properties[self._properties :]
        for handler, records, stream in self._logs:
            handler.records[:] = records
            handler.stream = stream
        _read_output(self._item)


def _fixtures(item: pytest.Item, kind: Any) -> List[Any]:
    """Fixtures of the test, including those of its fixtures."""
    return [value for value in getattr(item, "funcargs", {}).values() if isinstance(value, kind)]


def _log_handlers(item: pytest.Item) -> List[Any]:
    plugin = item.config.pluginmanager.getplugin("logging-plugin")
    handlers = (getattr(plugin, name, None) for name in ("caplog_handler", "report_handler"))
    return [handler for handler in handlers if hasattr(handler, "records")]


_PATCHES = ("_setattr", "_setitem", "_cwd", "_savesyspath")


def _monkeypatches(item: pytest.Item) -> List[Any]:
    return [patch for patch in _fixtures(item, pytest.MonkeyPatch) if all(hasattr(patch, name) for name in _PATCHES)]


def _take_patches(patch: Any, others: Tuple[Any, ...]) -> Tuple[Any, ...]:
    """Gives it other patches to undo, and returns its own."""
    own = tuple(getattr(patch, name) for name in _PATCHES)
    for name, value in zip(_PATCHES, others):
        setattr(patch, name, value)
    return own


def _keep_output(item: pytest.Item) -> None:
    """Moves the output captured so far to the report."""
    for name, text in zip(("stdout", "stderr"), _read_output(item)):
        item.add_report_section("call", name, text)


def _read_output(item: pytest.Item) -> Tuple[str, str]:
    """The output of the test and its fixtures since the last call; bytes of ``capsysbinary`` are left out."""
    manager = item.config.pluginmanager.getplugin("capturemanager")
    captured = [fixture.readouterr() for fixture in _fixtures(item, pytest.CaptureFixture)]
    if manager is not None and manager.is_globally_capturing():
        captured.append(manager.read_global_capture())
    texts = [(out, err) for out, err in captured if isinstance(out, str)]
    return "".join(out for out, _ in texts), "".join(err for _, err in texts)


class _FailuresOnly:
    """Hooks as they are, but only reports of failures arrive."""

    def __init__(self, hooks: Any) -> None:
        self._hooks = hooks

    def __getattr__(self, name: str) -> Any:
        return getattr(self._hooks, name)

    def pytest_runtest_logreport(self, report: Any) -> None:
        if not report.passed:
            self._hooks.pytest_runtest_logreport(report=report)


def _mute_subtests(item: pytest.Item) -> None:
    """A subtest that passes is reported once, not at each call."""
    for fixture in getattr(item, "funcargs", {}).values():
        for name in ("_ihook", "ihook"):  # of pytest 9, of pytest-subtests
            if type(fixture).__name__.lower() == "subtests" and hasattr(fixture, name):
                setattr(fixture, name, _FailuresOnly(getattr(fixture, name)))
    add: Any = getattr(item, "addSubTest", None)  # of unittest's subTest
    if add is not None:

        def add_failure(case: Any, test: Any, error: Any) -> None:
            if error is not None:
                add(case, test, error)

        setattr(item, "addSubTest", add_failure)
