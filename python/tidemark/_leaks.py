"""What IPython keeps alive: the last traceback, ``Out``, ``_`` and its other caches.

    holder   a name that the user can free, with the objects it refers to
    walk     everything these objects refer to, down to modules, classes and the namespaces of functions
    kept     what the walk finds less what the user's own variables and modules reach: freeing the holder frees it

The walk calls no code of the objects it visits. Sizes are bytes: of Python objects as CPython reports them, of NumPy
arrays with their data, of torch tensors with their storage, on the host or on a device.
"""

import gc
import re
import sys
import types
from html import escape
from typing import Any, Callable, Dict, Iterable, Iterator, List, NamedTuple, Optional, Set, Tuple

from ._figures import is_installed, signed_text_of, text_of
from ._profile import rss_bytes

_BATCH = 1000
#: The walk ends here: about 100 bytes of memory for each object.
_MOST_OBJECTS = 3_000_000
_MOST_ROWS = 25
#: The shell's attribute that holds the last cell's result, beside Out and _.
_RESULT = "last_execution_result"
#: Variables in which IPython keeps results and inputs: _, _12, _i, _ii, _i12.
_HISTORY = re.compile(r"_+\d*|_i+\d*")
_RESULTS = re.compile(r"_+\d*")
_BORDER = (types.ModuleType, type, types.CodeType, types.BuiltinFunctionType)
_LEAVES = (str, bytes, int, float, complex, bool, type(None))
_MACHINERY = re.compile(r"/(?:IPython|ipykernel|tidemark)/\w+(?:/\w+)*\.py\Z")


class Holder(NamedTuple):
    """``free`` removes the references; ``roots`` are what they refer to."""

    name: str
    what: str
    roots: List[Any]
    free: Callable[[], None]


class Kept(NamedTuple):
    name: str
    what: str
    host_bytes: int
    device_bytes: int
    #: Names of holders that keep a part of it as well.
    shared: Tuple[str, ...]

    @property
    def command(self) -> str:
        return f"%tidemark_leaks --free {self.name}"


class KeptReport:
    """The table of ``%tidemark_leaks``."""

    def __init__(self, rows: List[Kept], is_whole: bool, device_bytes: Optional[int]) -> None:
        self.rows = sorted(rows, key=lambda row: -(row.host_bytes + row.device_bytes))
        self._is_whole = is_whole
        self._device_bytes = device_bytes

    def head(self) -> str:
        host, device = sum(row.host_bytes for row in self.rows), sum(row.device_bytes for row in self.rows)
        on_device = ""
        if self._device_bytes is not None:
            on_device = f" and {text_of(device)} of the {text_of(self._device_bytes)} that torch holds on the GPU"
        return f"IPython alone keeps {text_of(host)}{on_device} alive"

    def notes(self) -> List[str]:
        left = len(self.rows) - _MOST_ROWS
        notes = [f"{left} smaller entries are not listed."] if left > 0 else []
        if not self._is_whole:
            notes.append(f"The search ended after {_MOST_OBJECTS:,} objects: the sizes are lower bounds.")
        return notes

    def _cells(self) -> List[Tuple[str, ...]]:
        def device(row: Kept) -> Tuple[str, ...]:
            return () if self._device_bytes is None else (text_of(row.device_bytes),)

        return [
            (text_of(row.host_bytes), *device(row), row.name, _with_shared(row), row.command)
            for row in self.rows[:_MOST_ROWS]
        ]

    def _headings(self) -> Tuple[str, ...]:
        return ("size", *(() if self._device_bytes is None else ("GPU",)), "kept by", "what", "free it with")

    def __repr__(self) -> str:
        table = [self._headings(), *self._cells()] if self.rows else []
        widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))] if table else []
        rows = ["  " + "  ".join(text.ljust(width) for text, width in zip(row, widths)).rstrip() for row in table]
        return "\n".join([f"tidemark: {self.head()}", *rows, *self.notes()])

    def _repr_html_(self) -> str:
        cell = "text-align:left;padding:0 .8em 0 0;background:none"
        head = "".join(f'<th style="{cell}">{escape(text)}</th>' for text in self._headings())
        rows = ""
        for row in self._cells():
            *others, command = (escape(text) for text in row)
            cells = "".join(f'<td style="{cell}">{text}</td>' for text in others)
            rows += f'<tr>{cells}<td style="{cell}"><code>{command}</code></td></tr>'
        table = f'<table style="border-collapse:collapse;font-size:12px"><tr>{head}</tr>{rows}</table>' if rows else ""
        notes = "".join(f"<div>{escape(note)}</div>" for note in self.notes())
        return f'<div class="tidemark"><b>Tidemark</b>: {escape(self.head())}{table}{notes}</div>'


def _with_shared(row: Kept) -> str:
    return f"{row.what} (in part also {', '.join(row.shared)})" if row.shared else row.what


def find_kept(shell: Any) -> KeptReport:
    """Measures each holder of IPython. Takes seconds for millions of objects."""
    holders = list(_holders(shell))
    walk = _Walk(shell)
    walk.add(_of_user(shell), owner=-1)
    rows = []
    for index, holder in enumerate(holders):
        host, device, others = walk.add(holder.roots, owner=index)
        shared = tuple(holders[other].name for other in sorted(others))
        if host or device or shared:
            rows.append(Kept(holder.name, holder.what, host, device, shared))
    return KeptReport(rows, walk.is_whole, _device_bytes())


def free(shell: Any, name: str) -> str:
    """Frees a holder by name, or ``all``. Returns one line of what it brought. ValueError: no such holder."""
    holders = list(_holders(shell))
    chosen = [holder for holder in holders if name in ("all", holder.name) or (name == "Out" and holder.name.startswith("Out["))]
    if not chosen:
        names = ", ".join(["all", "Out", *(holder.name for holder in holders)][:12]) if holders else ""
        raise ValueError(f"nothing is kept under {name!r}; " + (f"kept are {names}" if holders else "IPython keeps nothing"))
    before, device_before = rss_bytes(), _device_bytes()
    for holder in chosen:
        holder.free()
    count = len(chosen)
    del holders, chosen, holder
    gc.collect()
    device = _device_bytes()
    text = f"tidemark: freed {name}" + (f" ({count} entries)" if count > 1 else "")
    text += f": RSS {signed_text_of(rss_bytes() - before)}"
    if device is not None and device_before is not None:
        text += f", GPU {signed_text_of(device - device_before)} (torch.cuda.empty_cache() returns it to the driver)"
    return text


# --- holders ------------------------------------------------------------------------------------


def _holders(shell: Any) -> Iterator[Holder]:
    yield from _tracebacks(shell)
    yield from _outputs(shell)
    yield from _figures()
    yield from _scripts(shell)
    yield from _inputs(shell)
    if gc.garbage:
        yield Holder("gc.garbage", f"{len(gc.garbage)} objects", [gc.garbage], gc.garbage.clear)


_LAST = ("last_exc", "last_value", "last_traceback", "last_type")


def _tracebacks(shell: Any) -> Iterator[Holder]:
    roots = [getattr(sys, name) for name in _LAST[:3] if getattr(sys, name, None) is not None]
    result = getattr(shell, "last_execution_result", None)
    roots += [error for error in (getattr(result, "error_in_exec", None), getattr(result, "error_before_exec", None)) if error]
    printers = [getattr(shell, name, None) for name in ("InteractiveTB", "SyntaxTB", "CustomTB")]
    roots += [value for printer in printers for value in _stored_errors(printer).values()]
    if not roots:
        return
    error = next((root for root in roots if isinstance(root, BaseException)), None)

    def free_all() -> None:
        for name in _LAST:
            vars(sys).pop(name, None)
        if result is not None:
            result.error_in_exec = result.error_before_exec = None
        for printer in printers:
            for name in _stored_errors(printer):
                setattr(printer, name, None)

    yield Holder("traceback", _text_of_error(error, shell), roots, free_all)


def _stored_errors(printer: Any) -> Dict[str, Any]:
    """Attributes of IPython's printers of tracebacks that hold the last one, and the debugger of %debug."""
    stored = getattr(printer, "__dict__", {})
    return {
        name: value
        for name, value in stored.items()
        if isinstance(value, (BaseException, types.TracebackType)) or (name == "pdb" and value is not None)
    }


def _text_of_error(error: Optional[BaseException], shell: Any) -> str:
    """The exception, and the largest variable of its frames."""
    if error is None:
        return "last traceback"
    text = f"last {type(error).__name__}"
    walk, largest = _Walk(shell), (0, "")
    walk.add(_of_user(shell), owner=-1)
    for frame in _frames_of(error):
        for name, value in _locals_of(frame, shell).items():
            host, device, _ = walk.add([value], owner=0)
            largest = max(largest, (host + device, f"{name} of {frame.f_code.co_name}"))
    return f"{text}: {largest[1]} holds {text_of(largest[0])}" if largest[0] else text


def _frames_of(error: BaseException) -> Iterator[Any]:
    seen: Set[int] = set()
    waiting: List[Optional[BaseException]] = [error]
    while waiting:
        each = waiting.pop()
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        waiting += [each.__cause__, each.__context__]
        traceback = each.__traceback__
        while traceback is not None:
            yield traceback.tb_frame
            traceback = traceback.tb_next


def _locals_of(frame: Any, shell: Any) -> Dict[str, Any]:
    """The variables of a frame of the user's; none for code of IPython and Tidemark, and for the notebook's own
    namespace."""
    if _MACHINERY.search(frame.f_code.co_filename):
        return {}
    variables = frame.f_locals
    return {} if variables is shell.user_ns or frame.f_globals is variables else dict(variables)


def _outputs(shell: Any) -> Iterator[Holder]:
    """Each object of Out, _, __ and ___ once, under its first name."""
    names: Dict[int, List[str]] = {}
    values: Dict[int, Any] = {}
    hook, space = shell.displayhook, shell.user_ns

    def found(name: str, value: Any) -> None:
        if not _is(value, *_LEAVES) or (_is(value, str, bytes) and len(value) > 4096):
            names.setdefault(id(value), []).append(name)
            values[id(value)] = value

    for number, value in list(space.get("_oh", {}).items()):
        found(f"Out[{number}]", value)
    for name in ("_", "__", "___"):
        found(name, getattr(hook, name, None))
    # A copy of each _, __ and _12 at the time it was set; deleting them in the notebook leaves this one.
    for name, value in list(shell.user_ns_hidden.items()):
        if _RESULTS.fullmatch(name):
            found(f"user_ns_hidden[{name!r}]", value)
    result = getattr(shell.last_execution_result, "result", None)
    if result is not None:
        found(_RESULT, result)
    for key, called in names.items():
        unique = list(dict.fromkeys(called))
        unique = [name for name in unique if name != _RESULT and not name.startswith("user_ns_hidden")] or unique
        others = f", also {', '.join(unique[1:])}" if len(unique) > 1 else ""
        yield Holder(unique[0], f"{_type_name(values[key])}{others}", [values[key]], _free_output(shell, key))


def _free_output(shell: Any, key: int) -> Callable[[], None]:
    def free_output() -> None:
        space, hook = shell.user_ns, shell.displayhook
        outputs = space.get("_oh", {})
        for number in [number for number, value in outputs.items() if id(value) == key]:
            del outputs[number]
            if id(space.get(f"_{number}")) == key:
                del space[f"_{number}"]
        for name in ("_", "__", "___"):
            if id(getattr(hook, name, None)) == key:
                setattr(hook, name, "")
            if id(space.get(name)) == key:
                space[name] = ""
        hidden = shell.user_ns_hidden
        for name in [name for name, value in hidden.items() if id(value) == key and _RESULTS.fullmatch(name)]:
            hidden[name] = ""  # the name stays: it keeps the variable out of %who
        result = shell.last_execution_result
        if id(getattr(result, "result", None)) == key:
            result.result = None

    return free_output


def _figures() -> Iterator[Holder]:
    helpers = sys.modules.get("matplotlib._pylab_helpers")
    managers = dict(getattr(getattr(helpers, "Gcf", None), "figs", {}))
    if managers:

        def close() -> None:
            sys.modules["matplotlib.pyplot"].close("all")

        yield Holder("figures", f"{len(managers)} open figures of matplotlib", [managers], close)


def _scripts(shell: Any) -> Iterator[Holder]:
    cache = getattr(shell, "_main_mod_cache", {})
    spaces = [vars(module) for module in cache.values()]
    if spaces:
        yield Holder("scripts", f"variables of {len(spaces)} scripts started by %run", spaces, cache.clear)


def _inputs(shell: Any) -> Iterator[Holder]:
    history = shell.user_ns.get("_ih", [])

    def clear() -> None:
        history[:] = [""] * len(history)
        for name in [name for name in shell.user_ns if name == "_i" or (name[:2] == "_i" and name[2:].isdigit())]:
            shell.user_ns[name] = ""

    if len(history) > 1:
        yield Holder("In", f"source of {len(history) - 1} cells: In, _i, _ii, _iii", [history], clear)


def _of_user(shell: Any) -> List[Any]:
    """The values of the user's variables, and of the modules that are not installed packages."""
    hidden = set(shell.user_ns_hidden) | {"In", "Out", "_", "__", "___", "_i", "_ii", "_iii", "_ih", "_oh", "_dh"}
    names = [name for name in shell.user_ns if name not in hidden and not _HISTORY.fullmatch(name)]
    roots = [shell.user_ns[name] for name in names]
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if isinstance(module, types.ModuleType) and isinstance(file, str) and not is_installed(file):
            roots += [value for value in list(vars(module).values()) if value is not shell.user_ns]
    return roots


# --- the walk -----------------------------------------------------------------------------------


class _Walk:
    """Visits each object once. An object belongs to the owner that reached it first."""

    def __init__(self, shell: Any) -> None:
        self.is_whole = True
        self._shell = shell
        self._owner: Dict[int, int] = {}
        self._storages: Set[Tuple[str, int]] = set()
        self._torch = sys.modules.get("torch")
        self._array: Any = getattr(sys.modules.get("numpy"), "ndarray", None)
        #: Referred to by what the walk visits, but no part of it. Running frames would lead to everything.
        self._stop = {id(shell), id(shell.user_ns), id(shell.displayhook), id(shell.user_ns.get("_oh")), id(self._owner)}
        for frame in sys._current_frames().values():
            each: Any = frame
            while each is not None:
                self._stop.add(id(each))
                each = each.f_back

    def add(self, roots: Iterable[Any], owner: int) -> Tuple[int, int, Set[int]]:
        """Bytes on the host and on devices that ``owner`` reaches first, and the earlier owners that it meets."""
        host = device = 0
        others: Set[int] = set()
        waiting = list(roots)
        while waiting:
            batch: List[Any] = []
            while waiting and len(batch) < _BATCH:
                each = waiting.pop()
                if _is(each, *_BORDER):
                    continue
                key = id(each)
                if key in self._stop:
                    continue
                known = self._owner.get(key)
                if known is not None:
                    if known not in (owner, -1) and not _is(each, *_LEAVES) and self._is_large(each):
                        others.add(known)
                    continue
                if len(self._owner) >= _MOST_OBJECTS:
                    self.is_whole = False
                    return host, device, others
                self._owner[key] = owner
                here, there = self._sizes(each)
                host, device = host + here, device + there
                if _is(each, types.FrameType):
                    waiting.extend(_locals_of(each, self._shell).values())
                elif _is(each, types.FunctionType):
                    waiting.extend(part for part in (each.__closure__, each.__defaults__, each.__kwdefaults__, each.__dict__) if part)
                elif not _is(each, *_LEAVES):
                    batch.append(each)
                    waiting.extend(self._hidden(each))
            waiting.extend(gc.get_referents(*batch))
        return host, device, others

    def _is_large(self, value: Any) -> bool:
        return self._plain_size(value) >= 1 << 16

    def _sizes(self, value: Any) -> Tuple[int, int]:
        torch = self._torch
        if torch is not None and _is(value, torch.Tensor):
            return self._tensor_sizes(value)
        return self._plain_size(value), 0

    def _plain_size(self, value: Any) -> int:
        kind = type(value)
        method = getattr(kind, "__sizeof__", None)
        try:
            # A __sizeof__ in Python, as of pandas, is code of the object, and counts what the walk finds itself.
            size = object.__sizeof__(value) if isinstance(method, types.FunctionType) else kind.__sizeof__(value)
        except Exception:
            return 0
        if kind.__module__.partition(".")[0] == "pyarrow" and hasattr(kind, "nbytes"):
            try:
                size = max(size, value.nbytes)
            except Exception:
                pass
        return int(size)

    def _tensor_sizes(self, tensor: Any) -> Tuple[int, int]:
        try:
            storage = tensor.untyped_storage()
            key = (str(tensor.device), storage.data_ptr())
            if key[1] == 0 or key in self._storages:
                return 0, 0
            self._storages.add(key)
            size = storage.nbytes()
        except Exception:  # without a storage: fake, meta and functional tensors
            return 0, 0
        return (size, 0) if tensor.device.type == "cpu" else (0, size)

    def _hidden(self, value: Any) -> List[Any]:
        """References that the garbage collector does not see: bases of arrays, the graph behind a tensor."""
        if self._array is not None and _is(value, self._array):
            # Slots of ndarray itself: a subclass may have its own attributes of these names.
            found = [self._array.base.__get__(value)]
            if self._array.dtype.__get__(value).hasobject:
                found += self._array.tolist(self._array.ravel(value))
            return found
        torch = self._torch
        if torch is None:
            return []
        if _is(value, torch.Tensor):
            return [part for part in (value.grad_fn, value.grad if value.is_leaf else None) if part is not None]
        if hasattr(type(value), "next_functions"):
            return _saved_by(value)
        return []


def _saved_by(node: Any) -> List[Any]:
    """What a node of torch's graph keeps for the backward pass, and the nodes before it."""
    found = [before for before, _ in node.next_functions if before is not None]
    for name in dir(type(node)):
        if name.startswith("_saved_") or name == "variable":
            try:
                found.append(getattr(node, name))
            except Exception:  # already freed by backward()
                continue
    return found


def _device_bytes() -> Optional[int]:
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    if cuda is None or not cuda.is_initialized():
        return None
    return sum(cuda.memory_allocated(index) for index in range(cuda.device_count()))


def _type_name(value: Any) -> str:
    kind = type(value)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    size_of = next((base.__len__ for base in (list, tuple, dict, set, str, bytes) if issubclass(kind, base)), None)
    return name if size_of is None else f"{name} of {size_of(value):,}"


def _is(value: Any, *kinds: type) -> bool:
    """``isinstance`` without asking the object for ``__class__``, which may be its own code."""
    return issubclass(type(value), kinds)
