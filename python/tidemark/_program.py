"""Tidemark's agent and program, as this process uses them on itself.

    agent     dist/native/libtidemark.so, loaded as the extension module ``_tidemark_agent``
    pool      TMPDIR/tidemark-XXXXXXXX/tidemark-PID.pool, which the agent writes and the program reads
    program   bin/tidemark, started for each snapshot; it reads the pool while this process keeps running

This file never calls code of the program under test. So a stack that contains one of its functions is Tidemark's own
work, and is left out of every figure.
"""

import importlib.machinery
import importlib.util
import json
import os
import shutil
import subprocess
import tempfile
from typing import Any, Dict, Iterator, List, Optional, Tuple

from . import _use_agent
from ._figures import Frame, Site

_NATIVE = ("dist/native", "node_modules/@tidemark-profiler/linux-x64", "../@tidemark-profiler/linux-x64")
#: Why there are no figures while another tool hides the allocations.
COVERED = (
    "another tool (such as memray) has replaced this process's allocation functions, so Tidemark does not see the "
    "allocations; use one tool at a time"
)


def _folders() -> Iterator[str]:
    """Where an installation may be: around this package, installed by pip, installed by npm."""
    yield os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    try:
        import tidemark_profiler

        yield tidemark_profiler.FOLDER
    except ImportError:
        pass
    launcher = shutil.which("tidemark")
    if launcher:
        yield os.path.dirname(os.path.dirname(os.path.realpath(launcher)))


def _find(*names: str) -> str:
    for folder in _folders():
        for name in names:
            path = os.path.join(folder, name)
            if os.path.isfile(path):
                return path
    raise RuntimeError(
        f"Tidemark's {os.path.basename(names[0])} is not installed here: without it this package records "
        "nothing; run: pip install tidemark-profiler"
    )


def _load(path: str) -> Any:
    loader = importlib.machinery.ExtensionFileLoader("_tidemark_agent", path)
    spec = importlib.util.spec_from_file_location("_tidemark_agent", path, loader=loader)
    if spec is None:
        raise RuntimeError(f"{path} cannot be loaded")
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


class Agent:
    """The agent in this process. It stays mapped after ``disarm``, but does nothing then."""

    def __init__(self) -> None:
        self.path = _find(*(f"{folder}/libtidemark.so" for folder in _NATIVE))
        try:
            self._module = _load(self.path)
        except ImportError as error:
            if "static TLS" not in str(error):
                raise RuntimeError(f"Tidemark cannot record this process: {error}") from None
            self.path = self.path.replace(".so", "-keyed.so")
            self._module = _load(self.path)
        self._folder: Optional[str] = None
        self._owner = 0

    def status(self) -> Dict[str, Any]:
        status: Dict[str, Any] = json.loads(self._module.status())
        return status

    def is_armed(self) -> bool:
        """Whether the agent records this process; it does not record a fork of one that armed it."""
        status = self.status()
        return bool(status["state"] == "armed" and status["pid"] == os.getpid())

    def arm(self, period: str, native: bool, fixed: bool = False) -> None:
        """Begins to record. ``fixed``: the period stays, whatever its samples cost. Raises RuntimeError if the agent
        refuses, or if another tool hides the allocations."""
        if not os.path.isdir(self._folder or "") or self._owner != os.getpid():
            self._folder = tempfile.mkdtemp(prefix="tidemark-")
            self._owner = os.getpid()
        options = f"dir={self._folder},nofollow,period={period}" + (",native" if native else "") + (",fixed" if fixed else "")
        self._module.arm(options)
        _use_agent(self.path)
        if self.status()["covered"]:
            self.disarm()
            raise RuntimeError(COVERED)

    def disarm(self) -> None:
        """Undoes everything: removes the hooks, the memory, the pool's file."""
        self._module.disarm()
        self.clear()

    def clear(self) -> None:
        """Removes the pool's folder if this process created it."""
        if self._folder is not None and self._owner == os.getpid():
            shutil.rmtree(self._folder, ignore_errors=True)
        self._folder = None

    def read(self) -> List[Site]:
        """The sites of this process up to now. Raises RuntimeError if another tool hid allocations."""
        status = self.status()
        if status["covered"]:
            raise RuntimeError(COVERED)
        pool = status["pool"]
        with tempfile.TemporaryDirectory(prefix="tidemark-") as folder:
            recording = os.path.join(folder, "snapshot.tidemark")
            try:
                _ask("import", pool, "--pid", str(os.getpid()), "-o", recording, "--quiet")
            except RuntimeError as error:
                if "TM-E014" in str(error):
                    return []  # nothing was sampled yet
                raise
            text = _ask("summary", recording, "--json", "--top", "1000000")
        sites: List[Optional[Site]] = json.loads(text, object_hook=_Reader())["sites"]
        return [site for site in sites if site is not None]


class _Reader:
    """Reduces each object of a summary as soon as it is parsed: the agent records this process's work, too, and a tree
    of dicts would take much of its tables.
    """

    def __init__(self) -> None:
        self._frames: Dict[Tuple[str, str, int], Frame] = {}

    def __call__(self, parsed: Dict[str, Any]) -> Any:
        if "function" in parsed:
            return self._frame(parsed)
        return _site_of(parsed) if "liveObjects" in parsed else parsed

    def _frame(self, parsed: Dict[str, Any]) -> Optional[Frame]:
        if parsed["kind"] != "python":
            return None
        key = (parsed["function"], parsed.get("file") or "", parsed.get("line") or 0)
        return self._frames.setdefault(key, Frame(*key))


def _site_of(parsed: Dict[str, Any]) -> Optional[Site]:
    """None for Tidemark's own work."""
    stack = tuple(frame for frame in parsed["stack"] if frame is not None)
    if any(frame.file == __file__ for frame in stack):
        return None
    return Site(
        stack,
        parsed["liveBytes"],
        parsed["liveObjects"],
        parsed["allocatedBytes"],
        parsed["standardErrorBytes"],
        parsed["liveBytesAtPeak"],
        parsed["standardErrorAtPeakBytes"],
        parsed["domain"] == "python",
    )


def _ask(*arguments: str) -> str:
    # Preloaded libraries and Tidemark's own settings are for this program, not for the one that reads it. A recorder of
    # this program leaves a process with the mark out of its figures.
    environment = {name: value for name, value in os.environ.items() if name not in ("LD_PRELOAD", "TIDEMARK")}
    environment["TIDEMARK_READER"] = "1"
    launcher = _find("bin/tidemark")
    answer = subprocess.run(
        ["/bin/sh", launcher, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
    )
    if answer.returncode != 0:
        lines = answer.stderr.decode("utf-8", "replace").strip().splitlines() or ["it gave no reason"]
        raise RuntimeError(f"Tidemark could not read its profile: {lines[-1]}")
    return answer.stdout.decode("utf-8")
