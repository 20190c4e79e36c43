"""Writes Python stacks beside the reports of `tidemark memcheck` and `tidemark asan`.

TIDEMARK_FRAMES is "memcheck:FOLDER" or "asan:FOLDER".
"""

import os
import sys


def _watch_memcheck(folder):
    """Has agent/calls/calls.c compare Valgrind's count of errors at each call and return, and writes the stack when it
    has grown.

    Each line of the file is [size of Valgrind's XML file before, size after, whether the call at the leaf caused it,
    whether this is the main thread, frames, addresses]. The addresses are those of the C stack of an error that Valgrind
    has reported before, and does not report again; otherwise there are none. There is a line for each thread that can
    have made the error: the one that notices it, and those that are in a C function, which may have released the GIL.
    """
    if "vgpreload" not in os.environ.get("LD_PRELOAD", ""):
        return  # Valgrind does not run this process: it does not follow set-user-ID programs, for example

    import threading

    out_path = ""

    def begin():
        nonlocal out_path
        out_path = os.path.join(folder, "frames.%d" % os.getpid())
        _write_faults(folder)
        calls.begin(os.path.join(folder, "valgrind.%d.xml" % os.getpid()))

    in_c_function, before_frame = 0, 2  # enum place of calls.c

    def note(before, now, place, frame):
        # Valgrind reports errors with the same four C functions at the leaf once. Whatever ctypes and cffi call has these
        # in common, so the lines of its later errors are written, too.
        addresses = ()
        if before == now:
            if "_ctypes" not in sys.modules and "_cffi_backend" not in sys.modules:
                return
            addresses = last_error()
        thread = threading.get_ident()
        if place == before_frame and frame.f_back is not None:
            frame = frame.f_back
        write(before, now, place == in_c_function, thread, frame, addresses)
        if addresses:
            return
        for other in calls.callers():
            # No variable keeps the dict: it contains the frame of this function, and such a cycle would keep the local
            # variables of the program's function after its return, until the next garbage collection.
            leaf = None if other == thread else sys._current_frames().get(other)
            if leaf is not None:
                write(before, now, True, other, leaf)

    def last_error():
        """Addresses of the stack of this process's last error, which Valgrind appends to its log file."""
        calls.show_last_error()
        with open(os.path.join(folder, "log"), "rb") as log:
            log.seek(max(0, os.fstat(log.fileno()).st_size - 50_000))
            lines = log.read().decode("latin-1").splitlines()
        start = "==%d==" % os.getpid()
        own = [line[len(start) :].strip() for line in lines if line.startswith(start)]
        # The error's stack, an empty line. The stacks of its block begin with "at", too.
        begin = max((i for i, line in enumerate(own[:-1]) if line == ""), default=-1) + 1
        found = ()
        for line in own[begin:]:
            word, _, rest = line.partition(" 0x")
            if word == "at" and found:
                break
            if word in ("at", "by"):
                found += ("0x" + rest.partition(":")[0],)
        return found

    def write(before, now, is_exact, thread, frame, addresses=()):
        import json

        # Tuples: a list that an extension freed twice may be handed out twice, and one would contain itself.
        frames = ()
        leaf = frame
        while leaf is not None and len(frames) < 100:
            code = leaf.f_code
            name = getattr(code, "co_qualname", code.co_name)
            frames += ((name, code.co_filename, leaf.f_lineno or 0),)
            leaf = leaf.f_back
        is_main = thread == threading.main_thread().ident
        line = json.dumps((before, now, is_exact, is_main, frames, addresses))
        with open(out_path, "a") as out:
            out.write(line + "\n")

    def watch_thread(frame, event, argument):
        calls.watch(note)

    def finish():
        # A process that does not come here was not finalized: what it holds at its end is not a leak.
        if calls is not None:
            calls.end()
        open(os.path.join(folder, "finished.%d" % os.getpid()), "w").close()
        _leave_mappings(folder)

    import atexit

    calls = _load_calls()
    atexit.register(finish)
    if calls is None:
        _write_faults(folder)
        os.register_at_fork(after_in_child=lambda: _write_faults(folder))
        return
    begin()
    os.register_at_fork(after_in_child=begin)
    threading.setprofile(watch_thread)
    calls.watch(note)


def _load_calls():
    """The extension module; None for a Python that it does not support, whose reports come without stacks."""
    if "t" in getattr(sys, "abiflags", ""):
        return None
    from importlib.machinery import ExtensionFileLoader, ModuleSpec

    name = "_tidemark_calls"
    loader = ExtensionFileLoader(name, os.environ.get("TIDEMARK_CALLS", ""))
    try:
        module = loader.create_module(ModuleSpec(name, loader, origin=loader.path))
        loader.exec_module(module)
    except ImportError:
        return None
    return module


def _write_faults(folder):
    """Writes the stack when a fatal signal comes."""
    import faulthandler

    # Kept open until the process ends.
    global _fault_file
    _fault_file = open(os.path.join(folder, "fault.%d" % os.getpid()), "w")
    faulthandler.enable(_fault_file)


def _leave_mappings(folder):
    """Which extensions were loaded, and so could be checked."""
    with open("/proc/self/maps") as maps, open(
        os.path.join(folder, "maps.%d" % os.getpid()), "w"
    ) as out:
        out.write(maps.read())


def _watch_aborts(folder):
    """The sanitizer aborts at its first error; faulthandler writes the stack of that moment."""

    def begin():
        _write_faults(folder)

    begin()
    os.register_at_fork(after_in_child=begin)
    import atexit

    atexit.register(_leave_mappings, folder)
    # The interpreter is not instrumented: it notices that an object was freed only if its memory was freed, too.
    calls = _load_calls()
    if calls is not None:
        calls.free_objects()
        atexit.register(calls.end)


def _prefer_builds(folders):
    # Even before the program's own folder, which may hold the same extension as it was built before.
    from importlib.machinery import PathFinder

    class Builds:
        @staticmethod
        def find_spec(name, path=None, target=None):
            spec = PathFinder.find_spec(name, folders) if path is None else None
            return None if spec is None or spec.loader is None else spec

    sys.meta_path.insert(0, Builds)


def _next_sitecustomize():
    # Python imports only the first sitecustomize of its path: the environment's own comes now.
    here = os.path.dirname(os.path.abspath(__file__))
    path = list(sys.path)
    sys.path[:] = [folder for folder in path if os.path.abspath(folder or ".") != here]
    own = sys.modules.pop("sitecustomize", None)
    try:
        import sitecustomize  # noqa: F401
    except ImportError as error:
        if error.name != "sitecustomize":
            raise
    finally:
        sys.path[:] = path
        sys.modules.setdefault("sitecustomize", own)


_next_sitecustomize()
_builds = [folder for folder in os.environ.get("TIDEMARK_BUILDS", "").split(":") if folder]
if _builds:
    _prefer_builds(_builds)
_tool, _, _folder = os.environ.get("TIDEMARK_FRAMES", "").partition(":")
try:
    if _tool == "memcheck":
        _watch_memcheck(_folder)
    elif _tool == "asan":
        _watch_aborts(_folder)
except OSError:
    pass  # no stacks: the reports come without them
