"""A thread in a program that Tidemark inspects: it sends the devices' figures to the Tidemark that started it.

    tidemark (recorder)                         this thread
      makes a Unix socket, sends the source  -->  connects
                                             <--  {"figures": figures}                   asked once
                                             <--  {"figures": ..., "written": true}      with a snapshot
                                             <--  {"beat": figures} every period      watching
                                             <--  {"snapshot": path, "reason": why}   it was written
                                             <--  {"note": sentence}
      "dump"                                 -->  writes a snapshot (another rank ran out)
      "stop", or the socket closes           -->  switches everything off and ends

Remote exec starts it between any two byte codes of the program's main thread, which may hold any lock. So the main
thread never waits here. Anything that may wait is done in this thread, and a call into torch that waits for the
allocator does so without the interpreter's lock.

A failure is reported once and ends the thread; nothing is raised, printed or logged in the program.
"""

import base64
import json
import os
import sys
import time
from typing import Any, Dict, Optional

import _socket
import _thread

from ._device_figures import read_figures, torch_is_initialized
from ._device_watch import Devices, Watching

Options = Dict[str, Any]

# Shares of a core: of all figures, and of walking the allocator's blocks for its largest free one. The
# first beats load code, which happens once.
_SHARE = 0.0005
_PIECES_SHARE = 0.0004
_COLD_BEATS = 2
_LONGEST_PERIOD = 60.0
_PATIENCE = 30.0


def run(options: Options) -> None:
    """The thread's body. ``options``: address of the socket; ``watch``: what to watch for, or None;
    ``snapshot``: path of an empty file for a snapshot, or None; ``profile``: whether to write JAX's profile;
    ``arrays_from``: bytes of the smallest of JAX's arrays to report."""
    line = _Line(options["address"])
    try:
        watch = options.get("watch")
        snapshot = options.get("snapshot")
        if watch is not None:
            _Beacon(line, watch).run()
        elif snapshot is not None:
            line.tell(figures=read_figures(with_pieces=False), **_write_snapshot(snapshot))
        else:
            figures = read_figures(with_segments=True, arrays_from=options["arrays_from"])
            line.tell(figures=figures, profile=_jax_profile(options))
    except Exception as error:  # the program goes on, whatever happens here
        line.tell(note=f"{type(error).__name__}: {error}")
    finally:
        line.close()


def _write_snapshot(path: str) -> Dict[str, Any]:
    """Writes a snapshot of torch's allocator, if the program uses a device. ``path`` is a file that the listener holds
    open. It has no name any more, so it disappears when both sides have closed it, even if either is killed."""
    torch = sys.modules.get("torch")
    if torch is None or not torch_is_initialized(torch):
        return {"written": False}
    try:
        file = os.open(path, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            os.unlink(path)
            torch.cuda.memory._dump_snapshot(f"/proc/self/fd/{file}")
        finally:
            os.close(file)
    except Exception as error:  # a full disk, or an allocator without snapshots
        return {"written": False, "refused": f"{type(error).__name__}: {error}"}
    return {"written": True}


def _jax_profile(options: Options) -> Optional[str]:
    """JAX's profile in pprof's format, gzipped; only if the program has initialized its backends."""
    bridge = sys.modules.get("jax._src.xla_bridge")
    if not options.get("profile") or bridge is None or not bridge.backends_are_initialized():
        return None
    profile: bytes = sys.modules["jax"].profiler.device_memory_profile()
    return base64.b64encode(profile).decode("ascii")


class _Line:
    """The connection. It uses the raw socket, because a patched one (gevent) would wait in the program's event loop."""

    def __init__(self, address: str) -> None:
        self._socket = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        self._socket.settimeout(_PATIENCE)
        self._socket.connect(address)
        self._rest = b""

    def tell(self, **message: Any) -> bool:
        """Sends a line of JSON; False if nobody listens any more. One send per line, so that threads do not mix their
        lines."""
        text = json.dumps(message, allow_nan=False).encode("ascii") + b"\n"
        try:
            # A broken connection must not raise SIGPIPE, which may kill the program.
            self._socket.sendall(text, _socket.MSG_NOSIGNAL)
            return True
        except OSError:
            return False

    def hear(self, seconds: float) -> Optional[str]:
        """The next word if it arrives within so many seconds, else None; "stop" if the other side has ended."""
        if b"\n" not in self._rest:
            self._socket.settimeout(max(0.001, seconds))
            try:
                got = self._socket.recv(4096)
            except TimeoutError:
                return None
            except OSError as error:
                # Before 3.10 a timeout has its own exception type.
                return None if type(error).__name__ == "timeout" else "stop"
            finally:
                self._socket.settimeout(_PATIENCE)
            if not got:
                return "stop"
            self._rest += got
        word, mark, rest = self._rest.partition(b"\n")
        if not mark:
            return None
        self._rest = rest
        return word.decode("ascii", "replace")

    def close(self) -> None:
        self._socket.close()


class _Beacon:
    """``watch``: period, threshold, directory, max_entries, cooldown, budget_bytes."""

    def __init__(self, line: _Line, watch: Options) -> None:
        self._line = line
        self._watch = watch
        self._pid = os.getpid()
        self._watching: Optional[Watching] = None
        self._once = _thread.allocate_lock()
        self._asked = False
        self._ended = False
        self._pieces_due = 0.0
        self._beats = 0

    def run(self) -> None:
        due = 0.0
        try:
            while True:
                if time.monotonic() >= due:
                    due = time.monotonic() + self._beat()
                word = self._line.hear(due - time.monotonic())
                if word == "stop":
                    return
                if word == "dump" and self._watching is not None:
                    self._watching.answer()
        finally:
            self._ended = True
            if self._watching is not None:
                self._watching.close()

    def _beat(self) -> float:
        """Sends the figures; returns the seconds until the next time, which keep the cost below its limit."""
        self._begin_with_torch()
        self._beats += 1
        begun = time.thread_time()
        if self._watching is not None:
            self._watching.look()
        pieces = time.monotonic() >= self._pieces_due
        figures = read_figures(with_pieces=pieces)
        if figures:
            self._line.tell(beat=figures)
        cost = 0.0 if self._beats <= _COLD_BEATS else time.thread_time() - begun
        if pieces:
            self._pieces_due = time.monotonic() + cost / _PIECES_SHARE
            cost = 0.0
        return max(float(self._watch["period"]), min(_LONGEST_PERIOD, cost / _SHARE))

    def _begin_with_torch(self) -> None:
        """Starts when torch is loaded: at once, or at the moment when the program begins to use a device."""
        torch = sys.modules.get("torch")
        if torch is None or self._once.locked():
            return
        if torch_is_initialized(torch):
            self._begin()
        elif not self._asked and hasattr(getattr(torch, "cuda", None), "_lazy_call"):
            self._asked = True
            torch.cuda._lazy_call(self._begin)

    def _begin(self) -> None:
        """Runs in this thread, or in the one that initializes the devices; never raises."""
        # A forked child inherits the request, but not this thread.
        if self._ended or os.getpid() != self._pid or not self._once.acquire(False):
            return
        try:
            devices = Devices(sys.modules["torch"], int(self._watch["max_entries"]))
            watching = Watching(
                devices,
                self._watch["threshold"],
                self._watch["directory"],
                self._watch["cooldown"],
                self._watch["budget_bytes"],
                told=lambda reason, path: self._line.tell(snapshot=path, reason=reason),
                warned=lambda text: self._line.tell(note=text),
            )
            devices.on_out_of_memory(lambda: watching.dump("oom"))
            self._watching = watching
        except Exception as error:
            self._line.tell(note=f"the allocator cannot be watched: {type(error).__name__}: {error}")
