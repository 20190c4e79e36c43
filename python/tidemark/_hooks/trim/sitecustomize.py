"""Returns glibc's free memory to the system once a second: `tidemark run --allocator trim`."""

import ctypes
import threading
import time


def _trim():
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError):
        return  # not glibc
    while True:
        time.sleep(1)
        trim(0)


threading.Thread(target=_trim, name="tidemark-trim", daemon=True).start()


def _next_sitecustomize():
    # Python imports only the first sitecustomize of its path: the environment's own comes now.
    import os
    import sys

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
