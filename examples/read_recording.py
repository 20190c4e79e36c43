"""Counts the frames of a recording: python read_recording.py app.tidemark (docs/recording.md)."""

import struct, sys, zlib
from collections import Counter

KINDS = "meta processes metrics dictionary profile samples events limits end holders census memoryEnds".split()
data = open(sys.argv[1], "rb").read()
magic, version, _ = struct.unpack_from("<8sII", data)
print(magic.decode(), "version", version)
counts, at = Counter(), 16
while at + 20 <= len(data):
    length, kind, flags, time_ms, crc = struct.unpack_from("<IHHdI", data, at)
    payload = data[at + 20 : at + 20 + length]
    if len(payload) < length or zlib.crc32(data[at : at + 16] + payload) != crc:
        break  # the file ends here: cut off, or damaged
    counts[KINDS[kind - 1]] += 1
    at += 20 + length
print(*(f"{name} {number}" for name, number in counts.items()), sep=", ")
