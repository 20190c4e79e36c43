"""Labels and steps for programs whose memory Tidemark watches, and measurements from inside.

Tidemark profiles unmodified programs; with this package, a program adds labels and steps to its profile::

    import tidemark

    with tidemark.label(endpoint="/search", tenant="acme"):
        handle(request)             # every allocation in here carries both labels

    @tidemark.label(stage="tokenize")
    async def tokenize(texts): ...  # a label as a decorator, of any function

    for batch in batches:
        with tidemark.step("train"):  # numbers itself: train 1, train 2, ...
            train(batch)              # the recording's timeline shows the steps

Labels nest; the innermost value of a key counts. They belong to the current context
(``contextvars``), so each asyncio task has its own and passes them on to the tasks it
starts; a new thread starts without labels, ``asyncio.to_thread`` and ``copy_context().run`` pass them on. Without
Tidemark's agent in the process nothing is loaded, looked up or kept: ``label`` and ``step``
return shared objects that do nothing.

A program can also record and measure itself; nothing of this is loaded before it is used::

    tidemark.start()                     # from here on; stop() takes everything back
    before = tidemark.snapshot()
    work()
    print(tidemark.compare(before, tidemark.snapshot()))

    with tidemark.measure() as m:        # or: m = tidemark.measure(work, argument)
        work()
    print(m)                             # peak, growth, and the lines behind it

    @tidemark.profile                    # prints the function's lines at the end
    def load(path): ...

    tidemark.enabled_by("PROFILE_MEMORY")  # start() if that variable is set; else all of it is off

A program can name what it can do without when its memory runs short; ``tidemark watch`` calls it if its policy
allows that::

    @tidemark.on_pressure
    def forget():
        cache.clear()

In IPython and Jupyter, ``%load_ext tidemark`` adds ``%%tidemark``, ``%tidemark_line`` and ``%tidemark_leaks``.
"""

import os
import sys
from typing import TYPE_CHECKING, Any, Dict, Optional

if TYPE_CHECKING:
    from ._pressure import on_pressure
    from ._profile import compare, enabled_by, measure, profile, snapshot, start, stop

#: Looked up in _profile when first used.
_MEASURING = ("compare", "enabled_by", "measure", "profile", "snapshot", "start", "stop")

__all__ = [
    "compare",
    "enabled_by",
    "label",
    "measure",
    "on_pressure",
    "profile",
    "snapshot",
    "start",
    "step",
    "stop",
]


class _NoStep:
    """The result of ``step`` without an agent: a context manager that does nothing."""

    __slots__ = ()

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *exception: Any) -> None:
        return None

    async def __aenter__(self) -> Any:
        return self

    async def __aexit__(self, *exception: Any) -> None:
        return None


class _NoLabel(_NoStep):
    """The result of ``label`` without an agent; as a decorator it returns the function unchanged."""

    __slots__ = ()

    def __call__(self, function: Any) -> Any:
        return function


_NO_STEP = _NoStep()
_NO_LABEL = _NoLabel()


class _AttachedAgent:
    """Placeholder for the part of the package that talks to the agent, until a label or step is first used: loading
    it takes
    longer than an attach may pause the program."""

    def __init__(self, path: str) -> None:
        self._path = path

    def Label(self, labels: Dict[str, object]) -> Any:
        return _agent.Label(labels) if self._load() else _NO_LABEL

    def Step(self, name: str) -> Any:
        return _agent.Step(name) if self._load() else _NO_STEP

    def _load(self) -> bool:
        global _agent
        try:
            _use_agent(self._path)
        except (ImportError, OSError):  # no ctypes here: the program goes on without labels
            _agent = None
        return _agent is not None


def _find_agent() -> Any:
    """The part of the package that talks to the agent, or None when no agent was preloaded or attached."""
    if "libtidemark" not in os.environ.get("LD_PRELOAD", ""):
        attached = getattr(sys.modules.get("_tidemark_agent"), "library_path", None)
        return None if attached is None else _AttachedAgent(attached)
    try:
        from . import _agent
    except ImportError:  # no ctypes here, or a preloaded library without the agent's exports
        return None
    return _agent


#: The library to look the agent's functions up in; None where it was preloaded.
_library_path: Optional[str] = None
_agent = _find_agent()


def _use_agent(path: str) -> None:
    """From now on labels and steps are passed to the agent that was loaded from ``path``."""
    global _agent, _library_path
    if _agent is None or isinstance(_agent, _AttachedAgent):
        import importlib

        _library_path = path
        _agent = importlib.import_module("._agent", __name__)


def _expect_agent(path: str) -> None:
    """An agent was attached, loaded from ``path``: labels and steps are passed to it from now on."""
    global _agent
    if _agent is None or isinstance(_agent, _AttachedAgent):
        _agent = _AttachedAgent(path)
    else:
        _agent.use_newer(path)


def __getattr__(name: str) -> Any:
    if name == "on_pressure":
        from ._pressure import on_pressure

        globals()[name] = on_pressure
        return on_pressure
    if name not in _MEASURING:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import _profile

    for known in _MEASURING:
        globals()[known] = getattr(_profile, known)
    return globals()[name]


def label(**labels: object) -> Any:
    """Labels every allocation made inside: ``with label(key=value):`` or ``@label(key=value)``.

    Values are turned into text by ``str`` at once and cut after 200 characters. Choose keys
    and values with few distinct texts: each new combination is kept for the whole run.
    Works in ``with`` and ``async with``, and decorates functions, coroutine functions and
    (asynchronous) generator functions: code between two yields belongs to the caller, and
    carries the caller's labels. A bare ``with label()`` around a yield would not know that.
    """
    if _agent is None:
        return _NO_LABEL
    return _agent.Label(labels)


def step(name: str) -> Any:
    """Marks one step of the program on the timeline; the steps of a name are numbered from 1.

    The step begins at the call. As ``with step(name):`` it ends with the block, and the
    allocations in it carry the label ``step=name``. A bare call ``step(name)`` lasts until
    the same thread's next ``step`` of that name.
    """
    if _agent is None:
        return _NO_STEP
    return _agent.Step(name)


def load_ipython_extension(shell: Any) -> None:
    """``%load_ext tidemark``: adds ``%%tidemark``, ``%tidemark_line`` and ``%tidemark_leaks``."""
    from ._notebook import load

    load(shell)


def unload_ipython_extension(shell: Any) -> None:
    """``%unload_ext tidemark``: removes what ``%load_ext tidemark`` added."""
    from ._notebook import unload

    unload(shell)
