"""Tidemark as pip installs it: this package holds the program, and ``python -m tidemark_profiler`` starts it.

Labels, steps and measurements are in the package ``tidemark``. Where another module has that name,
the same functions are here::

    from tidemark_profiler import label, measure, step
"""

import os
from typing import Any

_FUNCTIONS = ("compare", "enabled_by", "label", "measure", "profile", "snapshot", "start", "step", "stop")

__all__ = ["FOLDER", *_FUNCTIONS]


def _find_folder() -> str:
    """This package where pip installed it, else the clone that it lies in."""
    package = os.path.dirname(os.path.abspath(__file__))
    clone = os.path.dirname(os.path.dirname(package))
    for folder in (package, clone):
        if os.path.isfile(os.path.join(folder, "bin", "tidemark")):
            return folder
    return package


#: Absolute path of the installation: bin/, dist/, python/.
FOLDER = _find_folder()


def __getattr__(name: str) -> Any:
    """The functions of ``tidemark``, looked up when they are used: starting the program needs none."""
    if name not in _FUNCTIONS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(_labels(), name)


def _labels() -> Any:
    """The package ``tidemark`` if it is Tidemark's, else the copy in this installation."""
    import importlib.util
    import sys

    own = f"{__name__}._labels"
    if own in sys.modules:
        return sys.modules[own]
    try:
        import tidemark

        if all(hasattr(tidemark, name) for name in ("label", "step", "measure")):
            return tidemark
    except Exception:  # whatever the other module raises
        pass
    path = os.path.join(FOLDER, "python", "tidemark", "__init__.py")
    spec = importlib.util.spec_from_file_location(
        own, path, submodule_search_locations=[os.path.dirname(path)]
    )
    if spec is None or spec.loader is None:
        raise ImportError(f"cannot load {path}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[own] = module
    spec.loader.exec_module(module)
    return module
