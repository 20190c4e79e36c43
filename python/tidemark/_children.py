"""The memory of child processes, read from outside while a test runs. Bytes.

A thread looks every 10 ms whether this process has children, and adds up their private memory (USS) beside what the
agent says is live here. It reads as little as it can, for the agent records this thread, too; no code under test is
ever called from this file.
"""

import os
import threading
import time
from typing import Callable, Dict, List

#: Seconds between two looks.
INTERVAL = 0.01


class ChildWatch:
    """From ``start`` to ``end``: the highest sum of this process's live bytes and its children's private ones."""

    def __init__(self, live_bytes: Callable[[], int]) -> None:
        self._live_bytes = live_bytes
        self._is_armed = self._is_over = False
        #: Highest sum, the children's part of it, and how many they were.
        self.peak_bytes = self.children_bytes = self.children = 0
        self._before: Dict[int, int] = _private_bytes(os.getpid()) if _has_children() else {}
        # Before the agent is armed: what a thread takes is not the test's.
        self._thread = threading.Thread(target=self._watch, name="tidemark-children", daemon=True)
        self._thread.start()

    def start(self) -> None:
        self._is_armed = True

    def end(self) -> None:
        """May be called again."""
        if not self._is_over and self._is_armed and _has_children():
            self._look()
        self._is_over = True
        self._thread.join()

    def _watch(self) -> None:
        while not self._is_over:
            time.sleep(INTERVAL)
            if self._is_armed and not self._is_over and _has_children():
                self._look()

    def _look(self) -> None:
        children = _private_bytes(os.getpid())
        # A child of the set-up counts with what it grew.
        sizes = [max(0, size - self._before.get(pid, 0)) for pid, size in children.items()]
        total = self._live_bytes() + sum(sizes)
        if sizes and total > self.peak_bytes:
            self.peak_bytes, self.children_bytes, self.children = total, sum(sizes), len(sizes)


def _has_children() -> bool:
    """Of any thread. Reaps none."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except OSError:
        return False
    return True


def _private_bytes(pid: int) -> Dict[int, int]:
    """Of each descendant that can be read."""
    sizes: Dict[int, int] = {}
    waiting = _children_of(pid)
    while waiting:
        child = waiting.pop()
        if child not in sizes:
            sizes[child] = _uss(child)
            waiting += _children_of(child)
    return sizes


def _children_of(pid: int) -> List[int]:
    children: List[int] = []
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children", "rb") as file:
                children += map(int, file.read().split())
    except OSError:
        pass  # it has ended
    return children


def _uss(pid: int) -> int:
    total = 0
    try:
        with open(f"/proc/{pid}/smaps_rollup", "rb") as file:
            for row in file:
                if row.startswith((b"Private_Clean:", b"Private_Dirty:", b"Private_Hugetlb:")):
                    total += int(row.split()[1]) * 1024
    except OSError:
        pass  # it has ended, or is not ours to read
    return total
