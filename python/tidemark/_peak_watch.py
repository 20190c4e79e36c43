"""The RSS of this process, and its highest while a block runs."""

import os
import threading
from typing import Tuple

_INTERVAL_SECONDS = 0.01
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class PeakWatch:
    """The highest RSS while it runs: the kernel's high-water mark if that rose, else the highest of readings 10 ms
    apart."""

    def __init__(self) -> None:
        self._first = self._highest = rss_bytes()
        self._mark = _high_water_bytes()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="tidemark-peak", daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._ended.wait(_INTERVAL_SECONDS):
            self._highest = max(self._highest, rss_bytes())

    def end(self) -> Tuple[int, int, int]:
        """First, last and highest RSS."""
        last, mark = rss_bytes(), _high_water_bytes()
        self._ended.set()
        self._thread.join()
        highest = max(self._highest, last)
        return self._first, last, max(highest, mark) if mark > self._mark else highest


def rss_bytes() -> int:
    with open("/proc/self/statm", "rb") as file:
        return int(file.read().split()[1]) * _PAGE_BYTES


def _high_water_bytes() -> int:
    with open("/proc/self/status", "rb") as file:
        for row in file:
            if row.startswith(b"VmHWM:"):
                return int(row.split()[1]) * 1024
    return 0
