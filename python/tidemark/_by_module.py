"""``tidemark.torch.by_module``: the memory of one training step by ``nn.Module``, on the host and on devices.

A dispatch mode sees every operation of the step and the storages that its outputs live in; a weak reference sees the
end of each storage. An operation belongs to the module whose ``forward`` is running. In the backward pass it belongs
to the module that created the node of the graph: nodes are numbered in the order in which forward creates them.

Nothing is wrapped and no tensor is changed. On CUDA devices, peaks are those of torch's own allocator, so the mode
reads and resets its high-water mark whenever the running module changes.
"""

import weakref
from bisect import bisect_right
from html import escape
from types import TracebackType
from typing import Any, Callable, Dict, Iterable, Iterator, List, NamedTuple, Optional, Set, Tuple, Type

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten

from ._figures import text_of

_OUTSIDE = "(outside modules)"
_WHOLE = "(whole step)"


class Bytes(NamedTuple):
    host: int = 0
    device: int = 0

    def plus(self, other: "Bytes") -> "Bytes":
        return Bytes(self.host + other.host, self.device + other.device)

    def most(self, other: "Bytes") -> "Bytes":
        return Bytes(max(self.host, other.host), max(self.device, other.device))


class ModuleRow(NamedTuple):
    """The memory of a module with its submodules. Bytes on the host and on devices."""

    #: As in ``named_modules``; empty for the model itself.
    name: str
    kind: str
    parameters: Bytes
    gradients: Bytes
    #: Made while the module ran forward, and still alive when the backward pass began. None: there was none.
    saved: Optional[Bytes]
    #: The most that was alive in all while the module ran, forward or backward. None: it did not run.
    peak: Optional[Bytes]


class ModuleMemory:
    """``with by_module(model) as memory:`` measures the block; then ``memory.rows`` and ``print(memory)``."""

    def __init__(self, model: Any) -> None:
        if not isinstance(model, torch.nn.Module):
            raise TypeError(f"tidemark.torch.by_module takes an nn.Module, not {type(model).__name__}")
        self.rows: List[ModuleRow] = []
        #: What the step returned, where ``by_module`` was given one.
        self.result: Any = None
        self._model = model
        self._tracker: Optional[_Tracker] = None

    def __enter__(self) -> "ModuleMemory":
        self._tracker = _Tracker(self._model)
        self._tracker.begin()
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        tracker, self._tracker = self._tracker, None
        if tracker is not None:
            tracker.end()
            self.rows = list(tracker.rows())

    def _table(self) -> List[List[str]]:
        figures: List[Tuple[str, Callable[[ModuleRow], Optional[Bytes]]]] = [
            ("parameters", lambda row: row.parameters),
            ("gradients", lambda row: row.gradients),
            ("saved", lambda row: row.saved),
            ("peak", lambda row: row.peak),
        ]
        places = [
            (place, index)
            for index, place in enumerate(("host", "device"))
            if any((figure(row) or Bytes())[index] for row in self.rows for _, figure in figures)
        ] or [("host", 0)]
        headings = [f"{name} ({place})" for name, _ in figures for place, _ in places]
        rows = [["module", "type", *headings]]
        for row in self.rows:
            depth = row.name.count(".") + 1 if row.kind and row.name else 0
            shown = "  " * depth + (row.name.rpartition(".")[2] or "(model)")
            cells = [
                "" if figure(row) is None else text_of((figure(row) or Bytes())[index])
                for _, figure in figures
                for _, index in places
            ]
            rows.append([shown, row.kind, *cells])
        return rows

    def __repr__(self) -> str:
        if not self.rows:
            return "tidemark: no step is measured yet: by_module(model, step), or with by_module(model) as memory: ..."
        table = self._table()
        widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))]

        def line_of(row: List[str]) -> str:
            texts = [text.ljust(width) for text, width in zip(row[:2], widths)]
            return "  ".join([*texts, *(text.rjust(width) for text, width in zip(row[2:], widths[2:]))]).rstrip()

        return "\n".join(map(line_of, table))

    def _repr_html_(self) -> str:
        if not self.rows:
            return f"<p>{escape(repr(self))}</p>"
        head, *body = self._table()
        cell = "text-align:{};padding:0 .8em;white-space:pre;background:none"

        def row_of(row: List[str], tag: str) -> str:
            cells = (
                f'<{tag} style="{cell.format("left" if index < 2 else "right")}">{escape(text)}</{tag}>'
                for index, text in enumerate(row)
            )
            return f"<tr>{''.join(cells)}</tr>"

        rows = "".join(row_of(row, "td") for row in body)
        return f'<table class="tidemark" style="border-collapse:collapse;font-size:12px">{row_of(head, "th")}{rows}</table>'


def by_module(model: Any, step: Optional[Callable[..., Any]], arguments: Any, keywords: Any) -> ModuleMemory:
    memory = ModuleMemory(model)
    if step is None:
        if arguments or keywords:
            raise TypeError("tidemark.torch.by_module takes the step before its arguments")
        return memory
    if not callable(step):
        raise TypeError(f"tidemark.torch.by_module takes a function as its step, not {type(step).__name__}")
    with memory:
        memory.result = step(*arguments, **keywords)
    return memory


def _bytes_of(tensors: Iterable[Any], seen: Set[Any]) -> Bytes:
    """Each storage once."""
    total = Bytes()
    for tensor in tensors:
        storage = _storage_of(tensor)
        if storage is not None and storage._cdata not in seen:
            seen.add(storage._cdata)
            total = total.plus(_sized(tensor.device, storage))
    return total


def _storage_of(tensor: Any) -> Any:
    """None for tensors without memory of their own: meta, fake, wrappers, and uninitialized parameters."""
    try:
        return None if tensor.device.type == "meta" else tensor.untyped_storage()
    except (RuntimeError, NotImplementedError, ValueError, AttributeError):
        return None


def _sized(device: Any, storage: Any) -> Bytes:
    size = storage.nbytes()
    return Bytes(size, 0) if device.type == "cpu" else Bytes(0, size)


class _Live(NamedTuple):
    """A storage while it lives. ``owner`` is empty for what was there before the step."""

    size: Bytes
    owner: Tuple[str, ...]
    is_backward: bool
    reference: Any


class _Tracker(TorchDispatchMode):
    """Follows one step. Modules are named by their chain: the names of the running module and those around it."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self._modules: Dict[str, Any] = dict(model.named_modules())
        self._names = {id(module): name for name, module in self._modules.items()}
        self._parameters = {id(parameter): name for name, parameter in model.named_parameters()}
        self._stack: List[str] = []
        #: At this sequence number of the graph, this module's forward began to run.
        self._numbers: List[int] = [0]
        self._runners: List[Tuple[str, ...]] = [()]
        self._live: Dict[int, _Live] = {}
        self._total = Bytes()
        self._peaks: Dict[str, Bytes] = {}
        self._whole = Bytes()
        self._saved: Optional[Dict[str, Bytes]] = None
        #: By the parameter's id.
        self._gradients: Dict[int, Bytes] = {}
        self._around: Dict[str, Tuple[str, ...]] = {name: tuple(_prefixes(name)) for name in self._modules}
        self._was_backward = False
        self._handles: List[Any] = []
        self._device = _DeviceMark(self._raise_peak)

    # --- begin and end --------------------------------------------------------------------------

    def begin(self) -> None:
        module = torch.nn.modules.module
        for tensor in self._tensors_of(""):
            self._follow(tensor, (), counts=True)
        for parameter in self._modules[""].parameters():
            self._read_gradient(parameter)
            if parameter.requires_grad:
                self._handles.append(parameter.register_post_accumulate_grad_hook(self._read_gradient))
        self._handles.append(module.register_module_forward_pre_hook(self._enter_module))
        self._handles.append(module.register_module_forward_hook(self._leave_module, always_call=True))
        self._device.begin()
        self._raise_peak((), self._total)
        self.__enter__()

    def end(self) -> None:
        self.__exit__(None, None, None)
        for handle in self._handles:
            handle.remove()
        self._device.end()
        for parameter in self._modules[""].parameters():
            self._read_gradient(parameter)
        self._live.clear()

    def _tensors_of(self, name: str) -> Iterator[Any]:
        module = self._modules[name]
        for parameter in module.parameters():
            yield parameter
            if parameter.grad is not None:
                yield parameter.grad
        yield from module.buffers()

    def _read_gradient(self, parameter: Any) -> None:
        if parameter.grad is not None:
            size = _bytes_of([parameter.grad], set())
            self._gradients[id(parameter)] = size.most(self._gradients.get(id(parameter), Bytes()))

    # --- while it runs --------------------------------------------------------------------------

    def _enter_module(self, module: Any, arguments: Any) -> None:
        name = self._names.get(id(module))
        if name is not None:
            self._stack.append(name)
            self._note_runner()

    def _leave_module(self, module: Any, arguments: Any, output: Any) -> None:
        if self._names.get(id(module)) is not None and self._stack:
            self._stack.pop()
            self._note_runner()

    def _note_runner(self) -> None:
        self._numbers.append(torch.autograd._get_sequence_nr())
        self._runners.append(tuple(self._stack))
        self._device.switch(tuple(self._stack))

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        node = torch._C._current_autograd_node()
        if (node is not None) != self._was_backward:
            self._was_backward = node is not None
            if node is not None:
                self._take_saved()
        # Recomputation of checkpoints runs forward within the backward pass.
        chain = self._chain_of(node) if node is not None and not self._stack else tuple(self._stack)
        self._device.switch(chain)
        given, _ = tree_flatten((args, kwargs or {}))
        for each in given:
            if isinstance(each, torch.Tensor):
                self._follow(each, (), counts=False)
        result = func(*args, **(kwargs or {}))
        made, _ = tree_flatten(result)
        for each in made:
            if isinstance(each, torch.Tensor):
                self._follow(each, chain or (_OUTSIDE,), counts=True)
        self._raise_peak(chain, self._total)
        return result

    def _chain_of(self, node: Any) -> Tuple[str, ...]:
        variable = getattr(node, "variable", None)  # of AccumulateGrad, which forward did not number
        if variable is not None:
            name = self._parameters.get(id(variable))
            return () if name is None else self._around[name.rpartition(".")[0]]
        number = node._sequence_nr()
        return self._runners[bisect_right(self._numbers, number) - 1]

    def _follow(self, tensor: Any, owner: Tuple[str, ...], counts: bool) -> None:
        """``counts``: False for what an operation was given. It is known then, and views of it are not new memory."""
        storage = _storage_of(tensor)
        if storage is None or storage._cdata in self._live:
            return
        key = storage._cdata
        size = _sized(tensor.device, storage) if counts else Bytes()

        def ended(_: Any, live: Dict[int, _Live] = self._live) -> None:
            gone = live.pop(key, None)
            if gone is not None:
                self._total = Bytes(self._total.host - gone.size.host, self._total.device - gone.size.device)

        self._live[key] = _Live(size, owner, self._was_backward, weakref.ref(storage, ended))
        self._total = self._total.plus(size)

    def _with_containers(self, chain: Tuple[str, ...]) -> List[str]:
        """With the modules that hold the running ones and have no forward of their own, such as ``ModuleList``."""
        return list(dict.fromkeys(name for each in chain for name in self._around.get(each, (each,))))

    def _raise_peak(self, chain: Tuple[str, ...], size: Bytes) -> None:
        self._whole = self._whole.most(size)
        for name in self._with_containers(chain) or (_OUTSIDE,):
            self._peaks[name] = size.most(self._peaks.get(name, Bytes()))

    def _take_saved(self) -> None:
        """What forward made and the backward pass finds, by module. With several backward passes, the largest."""
        saved: Dict[str, Bytes] = {}
        for live in list(self._live.values()):
            if not live.is_backward:
                for name in self._with_containers(live.owner):
                    saved[name] = live.size.plus(saved.get(name, Bytes()))
                if live.owner:
                    saved[_WHOLE] = live.size.plus(saved.get(_WHOLE, Bytes()))
        if self._saved is None or sum(saved.get(_WHOLE, Bytes())) > sum(self._saved.get(_WHOLE, Bytes())):
            self._saved = saved

    # --- the table ------------------------------------------------------------------------------

    def rows(self) -> Iterator[ModuleRow]:
        for name, module in self._modules.items():
            gradients = (self._gradients.get(id(parameter), Bytes()) for parameter in module.parameters())
            yield ModuleRow(
                name,
                type(module).__name__,
                _bytes_of([*module.parameters()], set()),
                _sum(gradients),
                self._saved_of(name),
                self._peaks.get(name),
            )
        if _OUTSIDE in self._peaks:
            yield ModuleRow(_OUTSIDE, "", Bytes(), Bytes(), self._saved_of(_OUTSIDE), self._peaks[_OUTSIDE])
        model = _bytes_of([*self._modules[""].parameters()], set())
        yield ModuleRow(_WHOLE, "", model, _sum(self._gradients.values()), self._saved_of(_WHOLE), self._whole)

    def _saved_of(self, name: str) -> Optional[Bytes]:
        return None if self._saved is None else self._saved.get(name, Bytes())


def _prefixes(name: str) -> Iterator[str]:
    """Of "blocks.0.up": "", "blocks", "blocks.0", "blocks.0.up"."""
    yield ""
    words = name.split(".") if name else []
    for count in range(1, len(words) + 1):
        yield ".".join(words[:count])


def _sum(sizes: Iterable[Bytes]) -> Bytes:
    total = Bytes()
    for size in sizes:
        total = total.plus(size)
    return total


class _DeviceMark:
    """The high-water mark of torch's CUDA allocator, for the module that runs; nothing where CUDA is not in use.

    It includes what the mode cannot see: rounding, and the workspace of a single operation.
    """

    def __init__(self, raise_peak: Callable[[Tuple[str, ...], Bytes], None]) -> None:
        self._raise_peak = raise_peak
        self._cuda: Any = torch.cuda if torch.cuda.is_available() and torch.cuda.is_initialized() else None
        self._chain: Tuple[str, ...] = ()

    def begin(self) -> None:
        self._reset()

    def switch(self, chain: Tuple[str, ...]) -> None:
        if self._cuda is not None and chain != self._chain:
            self._read()
            self._chain = chain
            self._reset()

    def end(self) -> None:
        self.switch((_OUTSIDE,))

    def _read(self) -> None:
        cuda = self._cuda
        peak = sum(cuda.max_memory_allocated(index) for index in range(cuda.device_count()))
        self._raise_peak(self._chain, Bytes(0, peak))

    def _reset(self) -> None:
        if self._cuda is not None:
            for index in range(self._cuda.device_count()):
                self._cuda.reset_peak_memory_stats(index)
