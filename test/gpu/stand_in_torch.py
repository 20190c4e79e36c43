"""A stand-in for torch on a machine without a device. It does NOT test a GPU: it implements the functions
of torch.cuda that Tidemark calls, with figures that the test sets, and counts the calls. Everything
else in the tests is real: the process, remote exec, the thread in it, the socket, the recording. Its
results have the form that PyTorch 2.15 documents; with_torch.py checks that torch itself has every function.
"""

import importlib.machinery
import mmap
import os
import shutil
import sys
import threading
import time
import types

MIB = 1 << 20


class Device:
    """One device; `blocks`: (bytes, state) of each segment."""

    def __init__(self, index, total, segments):
        self.index = index
        self.total = total
        self.segments = segments
        self.retries = 0
        self.ooms = 0
        self.others = 1000 * MIB

    def add(self, size):
        self.segments.append([(size, "active_allocated")])

    def sum(self, *states):
        return sum(size for s in self.segments for size, state in s if state in states)

    @property
    def reserved(self):
        return self.sum("active_allocated", "active_pending_free", "inactive")

    def stats(self):
        def stat(value):
            return {"all": {"current": value, "peak": value + MIB, "allocated": 0, "freed": 0}}

        allocated = self.sum("active_allocated")
        split = sum(
            size
            for segment in self.segments
            for size, state in segment
            if state == "inactive" and any(other != "inactive" for _, other in segment)
        )
        return {
            "reserved_bytes": stat(self.reserved),
            "allocated_bytes": stat(allocated),
            "active_bytes": stat(allocated + self.sum("active_pending_free")),
            "requested_bytes": stat(allocated),
            "inactive_split_bytes": stat(split),
            "inactive_split": stat(3),
            "num_alloc_retries": self.retries,
            "num_ooms": self.ooms,
        }


class StandIn:
    """Installs the stand-in as `torch`; `begin` is called at the first use of a device."""

    def __init__(self, devices, snapshot):
        self.devices = devices
        self.snapshot = snapshot
        self.initialized = False
        self.queued = []
        self.observers = []
        self.history = []
        self.recording = False
        self.in_dump = threading.Event()
        _map_library("libtorch_python.so")

        torch = types.ModuleType("torch")
        torch.__spec__ = importlib.machinery.ModuleSpec("torch", None)
        torch.__version__ = "2.15.0+stand.in"
        cuda = types.ModuleType("torch.cuda")
        memory = types.ModuleType("torch.cuda.memory")
        torch.cuda, cuda.memory = cuda, memory
        torch._C = types.SimpleNamespace(
            _cuda_getDeviceCount=lambda: len(devices),
            _cuda_hasPrimaryContext=lambda index: True,
            _cuda_isHistoryEnabled=lambda: self.recording,
            _cuda_attach_out_of_memory_observer=self.observers.append,
        )
        cuda.is_initialized = lambda: self.initialized
        cuda._lazy_call = lambda call: call() if self.initialized else self.queued.append(call)
        cuda.device_count = lambda: len(devices)
        cuda.get_device_properties = lambda index: types.SimpleNamespace(
            name="stand-in, no device", total_memory=devices[index].total
        )
        cuda.memory_reserved = lambda index: devices[index].reserved
        cuda.mem_get_info = self.mem_get_info
        memory.memory_stats_as_nested_dict = lambda index: devices[index].stats()
        memory.memory_snapshot = self.memory_snapshot
        memory.get_allocator_backend = lambda: "native"
        memory.host_memory_stats = lambda: {
            "allocated_bytes.current": 64 * MIB,
            "active_bytes.current": 48 * MIB,
        }
        memory._record_memory_history = self.record_memory_history
        memory._dump_snapshot = self.dump_snapshot
        sys.modules.update({"torch": torch, "torch.cuda": cuda, "torch.cuda.memory": memory})

    def begin(self):
        # torch runs what was queued before it reports that it is initialized.
        for call in self.queued:
            call()
        self.initialized = True

    def mem_get_info(self, index):
        device = self.devices[index]
        return device.total - device.reserved - device.others, device.total

    def memory_snapshot(self, include_traces=True):
        assert not include_traces, "the traces are not wanted"
        address = 0x7F0000000000
        segments = []
        for device in self.devices:
            for blocks in device.segments:
                total = sum(size for size, _ in blocks)
                active = sum(size for size, state in blocks if state != "inactive")
                segments.append(
                    {
                        "device": device.index,
                        "address": address,
                        "total_size": total,
                        "allocated_size": active,
                        "active_size": active,
                        "stream": 0,
                        "segment_type": "large",
                        "segment_pool_id": (0, 0),
                        "is_expandable": False,
                        "blocks": [
                            {"size": size, "requested_size": size, "state": state}
                            for size, state in blocks
                        ],
                    }
                )
                address += total
        return segments

    def record_memory_history(self, enabled="all", *, stacks="all", max_entries=sys.maxsize):
        self.recording = enabled is not None
        self.history.append([enabled, stacks if enabled else "", max_entries if enabled else 0])

    def dump_snapshot(self, path):
        shutil.copyfile(self.snapshot, path)

    def run_out(self, index=0):
        """What the allocator does just before it raises the error."""
        self.devices[index].ooms += 1
        for observer in self.observers:
            observer(index, 20 * MIB, self.devices[index].total, 0)


def _map_library(name):
    """A mapping with the name of torch's library, by which Tidemark recognizes torch from outside."""
    folder = os.environ["STAND_IN_FOLDER"]
    path = os.path.join(folder, name)
    with open(path, "a+b") as file:
        file.truncate(4096)
        mapping = mmap.mmap(file.fileno(), 4096, prot=mmap.PROT_READ)
    globals()["_mapping"] = mapping


def wait_for(condition, seconds=120):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    return bool(condition())
