"""Writes Python stacks beside the reports of `tidemark memcheck` and `tidemark asan`.

TIDEMARK_FRAMES is "memcheck:FOLDER" or "asan:FOLDER".
"""

import os
import sys


def _watch_memcheck(folder):
    """Compares the size of Valgrind's XML file at each call and return: where it grew, an error was reported.

    Each line of the file is [size before, size after, whether the call at the leaf caused it, whether this is the main
    thread, frames]. There is a line for each thread that can have made the error: the one that notices it, and those
    that are in a C function, which may have released the GIL.
    """
    import fcntl
    import json
    import threading

    # Every call and return of the program comes here, under Valgrind: one system call that allocates nothing, and
    # local names.
    xml = -1
    size = 0
    out_path = ""
    last_events = {}
    has_threads = False
    lseek = os.lseek
    end = os.SEEK_END
    current = threading.get_ident

    def open_xml():
        nonlocal xml, size
        xml, size = -1, 0
        try:
            xml = os.open(os.path.join(folder, "valgrind.%d.xml" % os.getpid()), os.O_RDONLY)
        except FileNotFoundError:
            return  # in a child that was forked, Valgrind makes it with the first report
        try:
            # A high number: programs close, and use again, the low ones.
            high = fcntl.fcntl(xml, fcntl.F_DUPFD_CLOEXEC, 700)
            os.close(xml)
            xml = high
        except OSError:
            pass  # the limit of open files is lower

    def begin():
        nonlocal out_path, size
        out_path = os.path.join(folder, "frames.%d" % os.getpid())
        last_events.clear()
        _write_faults(folder)
        open_xml()
        size = lseek(xml, 0, end) if xml >= 0 else 0

    def profile(frame, event, argument):
        try:
            if xml < 0:
                open_xml()
            if xml >= 0 and lseek(xml, 0, end) != size:
                note(frame, event)
            if has_threads:
                last_events[current()] = event
        except Exception:
            # After an error of the extension, even this code can fail: the report comes without its stack. An
            # exception from here would be raised in the program.
            pass

    def profile_thread(frame, event, argument):
        nonlocal has_threads
        has_threads = True
        sys.setprofile(profile)
        profile(frame, event, argument)

    def note(frame, event):
        nonlocal size
        before, size = size, lseek(xml, 0, end)
        thread = current()
        others = sys._current_frames()
        others.pop(thread, None)
        write(before, size, event in ("c_return", "c_exception"), thread, frame)
        for other in others:
            if last_events.get(other) == "c_call":
                write(before, size, True, other, others[other])

    def write(before, now, is_exact, thread, frame):
        # Tuples: a list that an extension freed twice may be handed out twice, and one would contain itself.
        frames = ()
        leaf = frame
        while leaf is not None and len(frames) < 100:
            code = leaf.f_code
            name = getattr(code, "co_qualname", code.co_name)
            frames += ((name, code.co_filename, leaf.f_lineno or 0),)
            leaf = leaf.f_back
        line = json.dumps((before, now, is_exact, thread == threading.main_thread().ident, frames))
        with open(out_path, "a") as out:
            out.write(line + "\n")

    def finish():
        # A process that does not come here was not finalized: what it holds at its end is not a leak.
        open(os.path.join(folder, "finished.%d" % os.getpid()), "w").close()

    begin()
    os.register_at_fork(after_in_child=begin)
    import atexit

    atexit.register(finish)

    threading.setprofile(profile_thread)
    sys.setprofile(profile)


def _write_faults(folder):
    """Writes the stack when a fatal signal comes."""
    import faulthandler

    # Kept open until the process ends.
    global _fault_file
    _fault_file = open(os.path.join(folder, "fault.%d" % os.getpid()), "w")
    faulthandler.enable(_fault_file)


def _watch_aborts(folder):
    """The sanitizer aborts at its first error; faulthandler writes the stack of that moment."""

    def begin():
        _write_faults(folder)

    def leave_mappings():
        # Which extensions were loaded, and so could be checked.
        with open("/proc/self/maps") as maps, open(
            os.path.join(folder, "maps.%d" % os.getpid()), "w"
        ) as out:
            out.write(maps.read())

    begin()
    os.register_at_fork(after_in_child=begin)
    import atexit

    atexit.register(leave_mappings)


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
