"""Labels and steps for a process with an agent; imported only if there is one.

The current labels are one str in a ``ContextVar``: pairs ``key US value``, joined by RS
(ASCII's unit and record separators). The agent gets the variable and reads it from
the running context whenever it takes a sample, so setting it is all that a label costs.
"""

import ctypes
import functools
import itertools
import threading
from contextvars import ContextVar
from typing import Any, Callable, Dict, Mapping, Optional, Tuple

from . import _library_path

_UNIT = "\x1f"
_RECORD = "\x1e"
_LONGEST_TEXT = 200
# co_flags, as in the module inspect, which takes long to import.
_GENERATOR = 0x20
_COROUTINE = 0x80
_ASYNC_GENERATOR = 0x200


_library: ctypes.CDLL
_set_label_variable: Any
_step_begin: Any
_step_end: Any


def _bind(path: Optional[str]) -> None:
    """Labels and steps are passed to this library from now on."""
    global _library, _set_label_variable, _step_begin, _step_end
    library = ctypes.CDLL(path)
    try:
        set_label_variable = library.tidemark_set_label_variable
        step_begin, step_end = library.tidemark_step_begin, library.tidemark_step_end
    except AttributeError as missing:
        raise ImportError("the loaded library is not Tidemark's agent") from missing
    set_label_variable.argtypes = [ctypes.py_object, ctypes.c_int64]
    set_label_variable.restype = None
    for function in (step_begin, step_end):
        function.argtypes = [ctypes.c_char_p, ctypes.c_uint64]
        function.restype = None
    _library, _set_label_variable, _step_begin, _step_end = library, set_label_variable, step_begin, step_end


def _version(library: ctypes.CDLL) -> bytes:
    text = ctypes.create_string_buffer(40)
    library.tidemark_status(text, ctypes.c_size_t(len(text)))
    return text.value.split(b",")[0]


def use_newer(path: str) -> None:
    """An agent was attached from ``path``. It receives the labels if it is of another version; otherwise the copy that
    was loaded first acts for both."""
    if _version(ctypes.CDLL(path)) != _version(_library):
        _bind(path)
        _set_label_variable(_labels, hash(_labels))


_bind(_library_path)
_labels: ContextVar[str] = ContextVar("tidemark.labels", default="")
# The texts to restore, innermost first. The chain is in the context itself, because several tasks may enter one Label
# at the same time.
_Chain = Optional[Tuple[str, Any]]
_outer: ContextVar[_Chain] = ContextVar("tidemark.outer", default=None)
_set_label_variable(_labels, hash(_labels))


def _clean(value: object) -> str:
    try:
        text = str(value)
    except Exception:  # a label must not break a program that works without it
        text = type(value).__name__
    return text[:_LONGEST_TEXT].replace(_UNIT, " ").replace(_RECORD, " ")


def _extend(outer: str, labels: Mapping[str, str]) -> str:
    """The text of ``outer`` with ``labels`` added; a repeated key gets the new value."""
    pairs = dict(pair.split(_UNIT, 1) for pair in outer.split(_RECORD)) if outer else {}
    for key in labels:
        pairs.pop(key, None)
    pairs.update(labels)
    return _RECORD.join(key + _UNIT + value for key, value in pairs.items())


class Label:
    """A set of labels, to be entered any number of times, by any number of tasks."""

    __slots__ = ("_labels",)

    def __init__(self, labels: Mapping[str, object]) -> None:
        self._labels = {_clean(key): _clean(value) for key, value in labels.items()}

    def __enter__(self) -> "Label":
        outer = _labels.get()
        _outer.set((outer, _outer.get()))
        _labels.set(_extend(outer, self._labels))
        return self

    def __exit__(self, *exception: Any) -> None:
        chain = _outer.get()
        if chain is not None:
            _labels.set(chain[0])
            _outer.set(chain[1])

    async def __aenter__(self) -> "Label":
        return self.__enter__()

    async def __aexit__(self, *exception: Any) -> None:
        self.__exit__()

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        flags = getattr(getattr(function, "__code__", None), "co_flags", 0)
        if flags & _ASYNC_GENERATOR:
            return _wrap_async_generator(self, function)
        if flags & _GENERATOR:
            return _wrap_generator(self, function)
        if flags & _COROUTINE:
            return _wrap_coroutine(self, function)
        return _wrap_function(self, function)


def _wrap_function(label: Label, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def labelled(*arguments: Any, **keywords: Any) -> Any:
        with label:
            return function(*arguments, **keywords)

    return labelled


def _wrap_coroutine(label: Label, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    async def labelled(*arguments: Any, **keywords: Any) -> Any:
        with label:
            return await function(*arguments, **keywords)

    return labelled


def _wrap_generator(label: Label, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def labelled(*arguments: Any, **keywords: Any) -> Any:
        generator = function(*arguments, **keywords)
        resume, value = generator.send, None
        while True:
            try:
                with label:
                    item = resume(value)
            except StopIteration as stop:
                return stop.value
            try:
                resume, value = generator.send, (yield item)
            except GeneratorExit:
                with label:
                    generator.close()
                raise
            except BaseException as exception:
                resume, value = generator.throw, exception

    return labelled


def _wrap_async_generator(label: Label, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    async def labelled(*arguments: Any, **keywords: Any) -> Any:
        generator = function(*arguments, **keywords)
        resume, value = generator.asend, None
        while True:
            try:
                with label:
                    item = await resume(value)
            except StopAsyncIteration:
                return
            try:
                resume, value = generator.asend, (yield item)
            except GeneratorExit:
                with label:
                    await generator.aclose()
                raise
            except BaseException as exception:
                resume, value = generator.athrow, exception

    return labelled


_numbers: Dict[str, "itertools.count[int]"] = {}
# Steps begun by a plain call, by thread and name; the next step of that name ends them.
_bare: Dict[Tuple[int, str], "Step"] = {}


class Step:
    """One step. It begins at construction, and ends when its block is left or at the next plain call."""

    __slots__ = ("_key", "_name", "_number", "_label")

    def __init__(self, name: str) -> None:
        text = _clean(name)
        self._key = (threading.get_ident(), text)
        before = _bare.pop(self._key, None)
        if before is not None:
            before._end()
        self._name = text.encode("utf-8", "backslashreplace").replace(b"\0", b" ")
        self._number = next(_numbers.setdefault(text, itertools.count(1)))
        self._label = Label({"step": text})
        _bare[self._key] = self
        _step_begin(self._name, self._number)

    def _end(self) -> None:
        _step_end(self._name, self._number)

    def __enter__(self) -> "Step":
        _bare.pop(self._key, None)
        self._label.__enter__()
        return self

    def __exit__(self, *exception: Any) -> None:
        self._label.__exit__()
        self._end()

    async def __aenter__(self) -> "Step":
        return self.__enter__()

    async def __aexit__(self, *exception: Any) -> None:
        self.__exit__()
