"""What a program releases when its memory runs short: ``tidemark.on_pressure``.

Whoever asks for it starts a thread, because the main thread may hold a lock that a function needs.
"""

import json
import threading
from typing import Any, Callable, Dict, List, Optional, TypeVar

Hook = TypeVar("Hook", bound=Callable[[], Any])

_hooks: List[Callable[[], Any]] = []
_running: Optional[threading.Thread] = None
_last: Dict[str, Any] = {}


def on_pressure(hook: Hook) -> Hook:
    """Registers a function without arguments that releases memory the program can do without, such as a cache.

    ``tidemark watch`` calls it, in a thread of its own, if its policy allows the action ``on_pressure`` and the
    program's memory is short. Returns the function, so it can be used as a decorator.
    """
    if not callable(hook):
        raise TypeError(f"on_pressure() needs a function, not {type(hook).__name__}")
    if hook not in _hooks:
        _hooks.append(hook)
    return hook


def _begin() -> None:
    """Calls all hooks in a new thread, unless one is still running."""
    global _running
    if _running is None or not _running.is_alive():
        _last.clear()
        _running = threading.Thread(target=_run, name="tidemark-pressure", daemon=True)
        _running.start()


def _run() -> None:
    errors = []
    hooks = list(_hooks)
    for hook in hooks:
        try:
            hook()
        except BaseException as error:  # the program's own, SystemExit among them; the others are still called
            name = getattr(hook, "__qualname__", repr(hook))
            errors.append(f"{name}: {type(error).__name__}: {error}"[:200])
    _last.update(called=len(hooks), errors=errors)


def _state() -> str:
    """As JSON: how many hooks are registered; and once all have returned, how many were called and their errors."""
    return json.dumps({"registered": len(_hooks), **_last})
