"""The figures that the device allocators of this process report.

This imports nothing and initializes no device: it asks only modules that the program has loaded, and only if the
program has begun to use a device. Answers are plain dicts for JSON; sizes are bytes; None if this version does not report a figure.

    torch       initialized?   stats of each device that has a context, pinned host memory
    jax         backends made? memory_stats() of each local device, its large arrays
    tensorflow  context made?  get_memory_info() of each GPU

Only the driver knows the free memory of a device (cudaMemGetInfo). That call, from any thread,
breaks the capture of a CUDA graph in another one unless the calling thread's capture mode is relaxed. So the mode is
relaxed first; if that fails, the driver is not asked.
"""

import functools
import math
import sys
import threading
from typing import Any, Callable, Dict, List, Optional, Set

Figures = Dict[str, Any]

# cudaStreamCaptureModeRelaxed (driver_types.h)
_RELAXED = 2
_FREE = "inactive"
_MOST_ARRAYS = 1000
#: The number of host memory among the devices, as in snapshots.
_HOST = -1
_thread = threading.local()


def read_figures(
    with_segments: bool = False, with_pieces: bool = True, arrays_from: Optional[int] = None
) -> Figures:
    """Figures of all loaded frameworks; one that fails reports its error and does not affect the others.

    with_pieces    also the largest free block, which walks all blocks of the allocator
    with_segments  also every segment with its blocks
    arrays_from    also JAX's arrays of at least so many bytes
    """
    found: Figures = {}
    for name, read in (
        ("torch", lambda torch: _torch(torch, with_segments, with_pieces)),
        ("jax", lambda jax: _jax(jax, arrays_from)),
        ("tensorflow", lambda tensorflow: _tensorflow(tensorflow, with_segments)),
    ):
        module = sys.modules.get(name)
        if module is not None:
            found[name] = _guarded(module, read)
    return found


def torch_is_initialized(torch: Any) -> bool:
    """Whether the program has begun to use a device; never begins it."""
    cuda = getattr(torch, "cuda", None)  # a module that is still being imported does not have it yet
    return cuda is not None and hasattr(cuda, "is_initialized") and bool(cuda.is_initialized())


def _guarded(module: Any, read: Callable[[Any], Figures]) -> Figures:
    about: Figures = {"version": str(getattr(module, "__version__", ""))}
    try:
        about.update(read(module))
    except Exception as error:
        about.update(state="failed", detail=f"{type(error).__name__}: {error}", devices=[])
    return about


def _torch(torch: Any, with_segments: bool, with_pieces: bool) -> Figures:
    if not torch_is_initialized(torch):
        loading = getattr(torch.__spec__, "_initializing", False)
        compiled = loading or hasattr(torch._C, "_cuda_getDeviceCount")
        return {"state": "unused" if compiled else "cpu-only", "devices": []}
    memory = torch.cuda.memory
    segments = _segments(torch, with_segments) if with_pieces or with_segments else None
    figures: Figures = {
        "state": "used",
        "backend": _optional(lambda: str(memory.get_allocator_backend())),
        "devices": [
            _torch_device(torch, index, segments)
            for index in range(torch.cuda.device_count())
            if torch._C._cuda_hasPrimaryContext(index)
        ],
        "pinned": _pinned(memory),
    }
    if with_segments:
        figures["segments"] = [_segment(segment) for segment in segments or []]
    return figures


def _torch_device(torch: Any, index: int, segments: Optional[List[Any]]) -> Figures:
    stats = torch.cuda.memory.memory_stats_as_nested_dict(index)
    properties = torch.cuda.get_device_properties(index)

    def of(name: str, kind: str = "current") -> Optional[int]:
        value = stats.get(name, {}).get("all", {}).get(kind)
        return None if value is None else int(value)

    own = None if segments is None else [s for s in segments if s["device"] == index]
    return {
        "index": index,
        "name": str(properties.name),
        "totalBytes": int(properties.total_memory),
        "freeBytes": _free_bytes(torch, index),
        "reservedBytes": of("reserved_bytes"),
        "allocatedBytes": of("allocated_bytes"),
        "activeBytes": of("active_bytes"),
        "requestedBytes": of("requested_bytes"),
        "peakReservedBytes": of("reserved_bytes", "peak"),
        "peakAllocatedBytes": of("allocated_bytes", "peak"),
        "inactiveSplitBytes": of("inactive_split_bytes"),
        "inactiveSplitBlocks": of("inactive_split"),
        "allocationRetries": int(stats.get("num_alloc_retries", 0)),
        "outOfMemory": int(stats.get("num_ooms", 0)),
        **_pieces(own),
    }


def _segments(torch: Any, at_any_cost: bool) -> Optional[List[Any]]:
    memory = torch.cuda.memory
    try:
        return list(memory.memory_snapshot(include_traces=False))
    except TypeError:
        # A version without this option would also return the whole history.
        recording = getattr(torch._C, "_cuda_isHistoryEnabled", None)
        if not at_any_cost and (recording is None or recording()):
            return None
        return list(memory.memory_snapshot())


def _pieces(segments: Optional[List[Any]]) -> Figures:
    """Free memory in segments that are in use, which cannot be returned to the driver, and the largest free block."""
    if segments is None:
        return {"splitBytes": None, "largestFreeBytes": None}
    split = largest = 0
    for segment in segments:
        free = [block["size"] for block in segment["blocks"] if block["state"] == _FREE]
        largest = max([largest, *free])
        if segment["active_size"] > 0:
            split += segment["total_size"] - segment["active_size"]
    return {"splitBytes": split, "largestFreeBytes": largest}


def _segment(segment: Any) -> List[Any]:
    """device, address, size, stream, pool, type, expandable, blocks [size, asked for, state]"""
    return [
        segment["device"],
        segment["address"],
        segment["total_size"],
        segment["stream"],
        list(segment.get("segment_pool_id", ())),
        segment["segment_type"],
        bool(segment.get("is_expandable", False)),
        [
            [block["size"], block.get("requested_size", block["size"]), block["state"]]
            for block in segment["blocks"]
        ],
    ]


def _pinned(memory: Any) -> Optional[Figures]:
    """Page-locked host memory of input queues and copies; from torch 2.9 on."""
    read = getattr(memory, "host_memory_stats", None)
    stats = None if read is None else _optional(read)
    if not stats:
        return None
    # Earlier versions say "segment" and "reserved" for what the allocator owns.
    owned = stats.get("allocated_bytes.current", stats.get("reserved_bytes.current"))
    return {"ownedBytes": owned, "activeBytes": stats.get("active_bytes.current")}


def _free_bytes(torch: Any, index: int) -> Optional[int]:
    if not _capture_is_relaxed():
        return None
    return _optional(lambda: int(torch.cuda.mem_get_info(index)[0]))


def _capture_is_relaxed() -> bool:
    """Whether this thread's capture mode is relaxed. It is relaxed once and stays so."""
    if not getattr(_thread, "relaxed", False):
        _thread.relaxed = _relax_capture()
    return bool(_thread.relaxed)


def _relax_capture() -> bool:
    """Uses the runtime library that the program has loaded."""
    try:
        import ctypes

        with open("/proc/self/maps") as maps:
            paths = {line.split(None, 5)[5].strip() for line in maps if "libcudart" in line}
        for path in sorted(paths):
            library = ctypes.CDLL(path, mode=ctypes.DEFAULT_MODE | 4)  # RTLD_NOLOAD
            exchange = library.cudaThreadExchangeStreamCaptureMode
            if exchange(ctypes.byref(ctypes.c_int(_RELAXED))) == 0:
                return True
    except (ImportError, OSError, AttributeError):
        pass
    return False


def _jax(jax: Any, arrays_from: Optional[int]) -> Figures:
    bridge = sys.modules.get("jax._src.xla_bridge")
    if bridge is None or not bridge.backends_are_initialized():
        return {"state": "unused", "devices": []}
    devices = []
    for device in jax.local_devices():
        stats = _optional(device.memory_stats)
        if stats:
            devices.append(
                {
                    "index": int(device.id),
                    "name": str(device.device_kind),
                    "totalBytes": stats.get("bytes_limit"),
                    "freeBytes": None,
                    "reservedBytes": stats.get("pool_bytes", stats.get("bytes_reserved")),
                    "allocatedBytes": stats.get("bytes_in_use"),
                    "peakAllocatedBytes": stats.get("peak_bytes_in_use"),
                    "largestFreeBytes": stats.get("largest_free_block_bytes"),
                }
            )
    figures: Figures = {"state": "used" if devices else "cpu-only", "devices": devices}
    if arrays_from is not None and devices:
        figures["arrays"] = _jax_arrays(jax, arrays_from, {one["index"] for one in devices})
    return figures


def _jax_arrays(jax: Any, least: int, devices: Set[int]) -> List[List[Any]]:
    """JAX's arrays, the largest first. No array is kept alive or waited for: the description is available without its
    data."""
    rows = [_optional(lambda: _jax_array(array, devices)) for array in jax.live_arrays()]
    large = [row for row in rows if row is not None and row[2] >= least]
    return sorted(large, key=lambda row: -row[2])[:_MOST_ARRAYS]


def _jax_array(array: Any, devices: Set[int]) -> Optional[List[Any]]:
    """Address of the object, device, bytes, shape and element type; for an array on several devices, its part on the
    first."""
    here = sorted({device.id for device in array.sharding.addressable_devices} & devices)
    if not here:
        return None
    shape = [int(size) for size in array.sharding.shard_shape(array.shape)]
    return [id(array), here[0], math.prod(shape) * array.dtype.itemsize, shape, str(array.dtype)]


def _tensorflow(tensorflow: Any, with_host: bool) -> Figures:
    """``with_host``: also the allocator of its CPU device, which raises unless it counts (TF_CPU_ALLOCATOR_USE_BFC)."""
    module = sys.modules.get("tensorflow.python.eager.context")
    context = None if module is None else module.context_safe()
    if context is None or not getattr(context, "_initialized", False):
        return {"state": "unused", "devices": []}
    devices = []
    for kind in ("GPU", "CPU") if with_host else ("GPU",):
        for device in tensorflow.config.list_logical_devices(kind):
            index = int(device.name.rsplit(":", 1)[1])
            read = functools.partial(tensorflow.config.experimental.get_memory_info, f"{kind}:{index}")
            info = read() if kind == "GPU" else _optional(read)
            if not info or (kind == "CPU" and not info["peak"]):
                continue
            devices.append(
                {
                    "index": index if kind == "GPU" else _HOST,
                    "name": str(device.name),
                    "totalBytes": None,
                    "freeBytes": None,
                    "allocatedBytes": int(info["current"]),
                    "peakAllocatedBytes": int(info["peak"]),
                }
            )
    if devices:
        return {"state": "used", "devices": devices}
    detail = "it counts host memory only with TF_CPU_ALLOCATOR_USE_BFC=1" if with_host else ""
    return {"state": "cpu-only", "detail": detail, "devices": []}


def _optional(read: Callable[[], Any]) -> Any:
    """A figure that a version, a backend or a driver may not provide."""
    try:
        return read()
    except Exception:
        return None
