"""The memory of child processes while a test runs, read by a separate process. Bytes.

    test's process                      watcher, one per test process, not its child
      begin POOL  ----------------->      every 10 ms: live bytes here (from the agent's pool) + private memory (USS)
      end         ----------------->      of each descendant; keeps the highest sum
            <--  PEAK CHILDREN COUNT

The watcher is not a thread: from 3.12 on, CPython warns about a fork in a process with several threads, and a
thread's allocations would count for the test. It is not a child either, because a test may wait for any child. It
ends with the test's process, and then removes the pool that a killed test left behind.
"""

import os
import select
import shutil
import struct
import subprocess
import sys
from typing import Dict, List, Optional, Tuple

#: Seconds between two readings.
INTERVAL = 0.01
_IDLE_SECONDS = 1.0
# Offsets of agent/include/segment.h.
_POOL_SLOTS = 16
_SEGMENT_VERSION = 8
_SEGMENT_LIVE_BYTES = 128
_KNOWN_VERSION = 2


class ChildWatch:
    """The test's side. If no watcher can be started, or a test closed its pipes, children count as zero."""

    def __init__(self) -> None:
        self._pid = 0
        self._talk: Optional[Tuple[int, int]] = None

    def start(self) -> None:
        """Starts the watcher if there is none, or if a test closed its pipes."""
        if self._pid != os.getpid() or self._ask("end") is None:
            self._start()

    def begin(self, pool: str) -> None:
        """Measures from here to ``end``; children that exist already count only with their growth."""
        self._ask(f"begin {pool}")

    def end(self) -> Tuple[int, int, int]:
        """The highest sum, the children's part of it, and their number; zeros if there were none."""
        answer = (self._ask("end") or "").split()
        return (int(answer[0]), int(answer[1]), int(answer[2])) if len(answer) == 3 else (0, 0, 0)

    def _start(self) -> None:
        self._pid, self._talk = os.getpid(), None
        environment = {name: value for name, value in os.environ.items() if name not in ("LD_PRELOAD", "TIDEMARK")}
        try:
            (hear, answer), (listen, say) = os.pipe(), os.pipe()
            words = [sys.executable, "-I", "-S", os.path.abspath(__file__), str(os.getpid())]
            with open(os.devnull, "wb") as nothing:
                subprocess.call(
                    words, stdin=listen, stdout=answer, stderr=nothing, env=environment, start_new_session=True
                )
        except (OSError, TypeError):
            return
        os.close(listen)
        os.close(answer)
        self._talk = hear, say

    def _ask(self, words: str) -> Optional[str]:
        if self._talk is None or self._pid != os.getpid():
            return None
        hear, say = self._talk
        try:
            os.write(say, words.encode("utf-8", "surrogateescape") + b"\n")
            text = b""
            while not text.endswith(b"\n"):
                piece = os.read(hear, 200)
                if not piece:
                    return None
                text += piece
            return text.decode().strip()
        except OSError:
            return None


# --- the watcher -----------------------------------------------------------------------------------


class _Watcher:
    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._started = _start_ticks(pid)
        self._pool = ""
        self._before: Dict[int, int] = {}
        self._highest = (0, 0, 0)

    def serve(self) -> None:
        """Runs until the other side closes the pipe, or has ended and left the pipe to a child."""
        text = b""
        while True:
            ready, _, _ = select.select([0], [], [], INTERVAL if self._pool else _IDLE_SECONDS)
            if ready:
                piece = os.read(0, 4096)
                if not piece:
                    return self._clean_up()
                text += piece
                while b"\n" in text:
                    line, text = text.split(b"\n", 1)
                    os.write(1, self._answer(line).encode() + b"\n")
            if _start_ticks(self._pid) != self._started:
                return self._clean_up()
            if self._pool:
                self._look()

    def _answer(self, line: bytes) -> str:
        word, _, path = line.partition(b" ")
        if word == b"begin":
            self._pool = os.fsdecode(path)
            self._before = _private_bytes(self._pid)
            self._highest = (0, 0, 0)
            return "ok"
        if self._pool:
            self._look()
        self._pool = ""
        return "%d %d %d" % self._highest

    def _look(self) -> None:
        children = _private_bytes(self._pid)
        # A child from the set-up counts only with its growth.
        sizes = [max(0, size - self._before.get(pid, 0)) for pid, size in children.items()]
        total = sum(sizes) + (_live_bytes(self._pool) if sizes else 0)
        if total > self._highest[0]:
            self._highest = total, sum(sizes), sum(size > 0 for size in sizes)

    def _clean_up(self) -> None:
        folder = os.path.dirname(self._pool)
        if os.path.basename(folder).startswith("tidemark-"):
            shutil.rmtree(folder, ignore_errors=True)


def _live_bytes(pool: str) -> int:
    """Live bytes of the process that owns the pool's first slot."""
    try:
        with open(pool, "rb", buffering=0) as file:
            (start,) = struct.unpack("<Q", os.pread(file.fileno(), 8, _POOL_SLOTS))
            (version,) = struct.unpack("<I", os.pread(file.fileno(), 4, start + _SEGMENT_VERSION))
            (live,) = struct.unpack("<d", os.pread(file.fileno(), 8, start + _SEGMENT_LIVE_BYTES))
    except (OSError, struct.error):
        return 0
    return int(live) if version == _KNOWN_VERSION else 0


def _start_ticks(pid: int) -> bytes:
    """The start time, which distinguishes a process from a later one with the same pid; b"" if there is none."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return b""
    return b"" if fields[0] in (b"Z", b"X") else fields[19]


def _private_bytes(pid: int) -> Dict[int, int]:
    """USS of each descendant that can be read, by pid."""
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
        pass  # it has ended, or may not be read
    return total


def _main() -> None:
    watcher = _Watcher(int(sys.argv[1]))
    if os.fork() == 0:
        try:
            watcher.serve()
        except OSError:
            pass
        os._exit(0)


if __name__ == "__main__":
    _main()
