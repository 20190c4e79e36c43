"""The number of requests that this process has served, where ``tidemark watch`` reads it from outside.

A private mapping, found by its name in ``/proc/PID/maps``; the collector reads 24 bytes of it::

    /memfd:tidemark-requests      offset 0   "TMREQ" 0 0 1        what it is, and its version
                                         8   u64  pid             of the process that counts, in its own namespace
                                        16   u64  requests        since the process started

Threads: one lock, held for one addition. It is reentrant, because a finalizer that runs during the addition could serve a
request, too. Fork: the child has its own copy of the page, and begins at 0. Without memfd (another system, a sandbox),
``count`` does nothing.
"""

import os
from typing import Any, Callable, Optional

import _thread

_NAME = "tidemark-requests"
_MAGIC = b"TMREQ\0\0\1"
_SIZE = 4096
_PID, _REQUESTS = 1, 2


def _map() -> Optional[Any]:
    """The page as numbers of 64 bits; None where the system has none."""
    try:
        import mmap

        file = os.memfd_create(_NAME)
        try:
            os.ftruncate(file, _SIZE)
            page = mmap.mmap(file, _SIZE, flags=mmap.MAP_PRIVATE)
        finally:
            os.close(file)
        page[: len(_MAGIC)] = _MAGIC
        return memoryview(page).cast("Q")
    except (AttributeError, ImportError, OSError, ValueError):
        return None


def _counter(page: Any) -> Callable[[], None]:
    lock = _thread.RLock()

    def begin() -> None:
        nonlocal lock
        # Another thread of the parent may have held the old one.
        lock = _thread.RLock()
        page[_PID] = os.getpid()
        page[_REQUESTS] = 0

    def count() -> None:
        """Counts a request, or another unit of the program's work."""
        with lock:
            page[_REQUESTS] += 1

    begin()
    os.register_at_fork(after_in_child=begin)
    return count


def _uncounted() -> None:
    """Counts nothing: this system has no memory that can be found by a name."""


_page = _map()
count: Callable[[], None] = _uncounted if _page is None else _counter(_page)
