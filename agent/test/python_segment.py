"""Reads a pool file for the tests; the layout is generated from segment.h (`make layout`)."""

import json
import mmap
import struct
from collections import namedtuple

Frame = namedtuple("Frame", "function file line kind first_line")
Site = namedtuple("Site", "stack labels domain thread live_bytes live_objects live_variance live_samples allocated_bytes")
Live = namedtuple("Live", "site address bytes period")

_CODES = {"u8": "B", "u16": "H", "u32": "I", "u64": "Q", "f32": "f", "f64": "d", "i32": "i"}
# What a segment reports about the interpreter: python_state, and bits of limits.
FULL, FRAMES_ONLY, MALLOC, REFUSED = 1, 2, 3, 4
LIMIT_DEBUG, LIMIT_UNKNOWN, LIMIT_FREE_THREADED, LIMIT_MISMATCH, LIMIT_HOOKS_REPLACED = 1, 2, 4, 8, 1 << 11
SECTIONS = ["strings", "frames", "stacks", "threads", "labels", "sites", "live", "events", "openings"]


class Layout:
    def __init__(self, text):
        self.structs = json.loads(text)["structs"]

    def size(self, name):
        return self.structs[name]["size"]

    def get(self, data, base, name, *fields):
        """The values of some fields of the structure `name` at `base`."""
        values = []
        for field in fields:
            place = self.structs[name]["fields"][field]
            values.append(struct.unpack_from("<" + _CODES[place["type"]], data, base + place["offset"])[0])
        return values if len(values) > 1 else values[0]

    def offset(self, name, field):
        return self.structs[name]["fields"][field]["offset"]


class Segment:
    """The part of the pool that belongs to one process image."""

    def __init__(self, layout, data, base):
        get = layout.get
        header = "tm_segment_header"
        self.pid, self.state, self.python_state, self.limits, self.samples, self.lost, self.coarsest = get(
            data, base, header, "pid", "state", "python_state", "limits", "samples", "samples_lost", "period_bytes")
        version = base + layout.offset(header, "python_version")
        self.version = data[version:version + 32].split(b"\0")[0].decode()
        log = base + layout.offset(header, "log")
        self.log = data[log:log + get(data, base, header, "log_length")].decode()
        self.parts = {}
        for index, name in enumerate(SECTIONS):
            at = base + layout.offset(header, "sections") + index * layout.size("tm_section")
            offset, stride, count, capacity = get(data, at, "tm_section", "offset", "stride", "count", "capacity")
            self.parts[name] = (base + offset, stride, count, capacity)
        self._layout, self._data = layout, data
        self.sites = [self._site(i) for i in range(self.parts["sites"][2])]
        self.live = list(self._live())

    def _at(self, section, index):
        start, stride, _, _ = self.parts[section]
        return start + index * stride

    def string(self, identifier):
        if identifier == 0:
            return ""
        at = self.parts["strings"][0] + identifier * 8
        length = struct.unpack_from("<I", self._data, at)[0]
        return self._data[at + 4:at + 4 + length].decode("utf-8")

    def frame(self, index):
        function, file, line, kind, first = self._layout.get(
            self._data, self._at("frames", index), "tm_frame", "function", "file", "line", "kind", "first_line")
        return Frame(self.string(function), self.string(file), line, kind, first)

    def stack(self, node):
        """Frames, leaf first."""
        frames = []
        while node:
            node, frame = self._layout.get(self._data, self._at("stacks", node), "tm_stack_node", "parent", "frame")
            frames.append(self.frame(frame))
        return frames

    def opener(self, descriptor):
        """The stack that last opened the descriptor, leaf first; None: unknown."""
        if descriptor >= self.parts["openings"][2]:
            return None
        stack = self._layout.get(self._data, self._at("openings", descriptor), "tm_opening", "stack")
        return self.stack(stack) if stack else None

    def labels(self, index):
        pairs = {}
        while index:
            index, key, value = self._layout.get(
                self._data, self._at("labels", index), "tm_label", "parent", "key", "value")
            pairs.setdefault(self.string(key), self.string(value))
        return pairs

    def _site(self, index):
        stack, label, domain, thread, live, objects, variance, samples, allocated = self._layout.get(
            self._data, self._at("sites", index), "tm_site", "stack", "label", "domain", "thread", "live_bytes",
            "live_objects", "live_variance", "live_samples", "allocated_bytes")
        return Site(self.stack(stack), self.labels(label), domain, thread, live, objects, variance, samples, allocated)

    def _live(self):
        for index in range(self.parts["live"][3]):
            site, address, size, period = self._layout.get(
                self._data, self._at("live", index), "tm_live", "site", "address", "bytes", "period_bytes")
            if address:
                yield Live(self.sites[site], address, size, period)

    def events(self):
        found = []
        for index in range(min(self.parts["events"][2], self.parts["events"][3])):
            kind, value, label = self._layout.get(
                self._data, self._at("events", index), "tm_event", "kind", "value", "label")
            found.append((kind, value, self.labels(label)))
        return found


def read_pool(path, layout):
    """Every segment of a pool file, in the order of its slots."""
    with open(path, "rb") as file:
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)  # a sparse file with gigabytes of holes
    count, offset, stride = layout.get(data, 0, "tm_pool_header", "slot_count", "slots_offset", "slot_stride")
    segments = []
    for slot in range(count):
        state = layout.get(data, 4096 + slot * layout.size("tm_pool_slot"), "tm_pool_slot", "state")
        if state and offset + slot * stride < len(data):
            segments.append(Segment(layout, data, offset + slot * stride))
    return segments
