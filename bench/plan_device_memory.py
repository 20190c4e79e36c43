"""What a device shows while a case of bench/plan_device.py runs: figures of torch and NVML, the blocks at a peak, the context."""
import contextlib
import ctypes

import torch

DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}


class Device:
    """The GPU as NVML sees it, beside the figures of torch; on a CPU everything is 0."""

    def __init__(self, kind):
        self.kind = kind
        self.nvml = None
        if kind == "cuda":
            with contextlib.suppress(OSError):
                self.nvml = ctypes.CDLL("libnvidia-ml.so.1")
                self.nvml.nvmlInit_v2()
                self.handle = ctypes.c_void_p()
                self.nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(self.handle))

    def used(self):
        """Bytes of the whole device in use."""
        if self.nvml is None:
            return 0
        memory = (ctypes.c_ulonglong * 3)()
        self.nvml.nvmlDeviceGetMemoryInfo(self.handle, ctypes.byref(memory))
        return memory[2]

    def figures(self):
        if self.kind == "cpu":
            return {"allocated": 0, "reserved": 0, "peakAllocated": 0, "peakReserved": 0}
        torch.cuda.synchronize()
        return {
            "allocated": torch.cuda.memory_allocated(),
            "reserved": torch.cuda.memory_reserved(),
            "peakAllocated": torch.cuda.max_memory_allocated(),
            "peakReserved": torch.cuda.max_memory_reserved(),
        }

    def reset(self):
        if self.kind == "cuda":
            torch.cuda.synchronize()
            torch.cuda.reset_peak_memory_stats()


def larger(before, now):
    """Each figure's larger value of several batches."""
    return now if before is None else {name: max(value, before[name]) for name, value in now.items()}


def blocks_at_peak(device, run):
    """Blocks that `run` allocates and that are live when most is allocated, grouped by size; torch's own trace."""
    if device.kind == "cpu":
        return run()
    torch.cuda.memory._record_memory_history(context=None, max_entries=400000)
    before = torch.cuda.memory_allocated()
    made = run()
    events = torch.cuda.memory._snapshot()["device_traces"][0]
    torch.cuda.memory._record_memory_history(enabled=None)
    sign = {"alloc": 1, "free_completed": -1}
    total = highest = peak = 0
    for index, event in enumerate(events):
        total += sign.get(event["action"], 0) * event["size"]
        if total > highest:
            highest, peak = total, index
    live = {}
    for event in events[: peak + 1]:
        if event["action"] == "alloc":
            live[event["addr"]] = event["size"]
        elif event["action"] == "free_completed":
            live.pop(event["addr"], None)
    groups = {}
    for size in live.values():
        groups[size] = groups.get(size, 0) + 1
    ordered = sorted(groups.items(), key=lambda item: -item[0] * item[1])
    return {
        "before": before, "more": highest, "event": peak, "events": len(events),
        "lastAllocated": [event["size"] for event in events[: peak + 1] if event["action"] == "alloc"][-6:],
        "blocks": [{"bytes": size, "count": count} for size, count in ordered[:40]],
        "returned": made,
    }


def cache_tensors(cache):
    """All tensors that hang on a cache, each storage once."""
    found, seen, queue = {}, set(), [cache]
    while queue:
        value = queue.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if torch.is_tensor(value):
            found[value.untyped_storage().data_ptr()] = value
        elif isinstance(value, (list, tuple)):
            queue.extend(value)
        elif isinstance(value, dict):
            queue.extend(value.values())
        elif hasattr(value, "__dict__") and not isinstance(value, (type, torch.nn.Module)):
            queue.extend(vars(value).values())
    return list(found.values())


def machine(device, out):
    """The context before the first tensor, the library's workspaces, and what a CUDA graph takes."""
    if device.kind == "cpu":
        return
    out["name"] = torch.cuda.get_device_name(0)
    out["free"], out["total"] = torch.cuda.mem_get_info()
    out["usedByContext"] = device.used()
    torch.cuda.synchronize()
    x = torch.ones(1, device="cuda")
    out["firstTensor"] = {**device.figures(), "used": device.used()}
    for name, dtype in DTYPES.items():
        a = torch.randn(4096, 4096, device="cuda", dtype=dtype)
        before = torch.cuda.memory_allocated()
        b = torch.nn.functional.linear(a, a, torch.zeros(4096, device="cuda", dtype=dtype))
        torch.cuda.synchronize()
        out[f"product {name}"] = {"allocated": torch.cuda.memory_allocated() - before - b.nbytes, "used": device.used(), "reserved": torch.cuda.memory_reserved()}
        del a, b
    convolution = torch.nn.Conv2d(64, 64, 3, padding=1, device="cuda")
    image = torch.randn(16, 64, 56, 56, device="cuda", requires_grad=True)
    convolution(image).sum().backward()
    out["convolution"] = {**device.figures(), "used": device.used()}
    side = torch.nn.Sequential(*[torch.nn.Linear(4096, 4096, device="cuda", dtype=torch.bfloat16) for _ in range(8)])
    static = torch.randn(8, 4096, device="cuda", dtype=torch.bfloat16)
    with torch.no_grad():
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            side(static)
        torch.cuda.synchronize()
        before = {**device.figures(), "used": device.used()}
        graphs = []
        for _ in range(8):
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                side(static)
            graphs.append(graph)
        graphs[-1].replay()
        out["graphs"] = {"count": len(graphs), "before": before, "after": {**device.figures(), "used": device.used()}}
    del x
