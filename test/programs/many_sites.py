"""Hundreds of lines that each keep a known number of bytes, to test the statistics of the estimates.

    many_sites.py SITES BYTES FILE

writes FILE, a module of SITES functions, and runs each of them: function i keeps objects of one size
(40 bytes to 20 KiB, different for each site), about BYTES in all, while as many again come and go.
Between allocations it computes, because the agent may use a share of the program's CPU time.
"""
import importlib.util
import json
import os
import sys
import time
import zlib

sizes = [8, 40, 120, 300, 480, 700, 1500, 4000, 9000, 20000]


def main():
    count, bytes_each, path = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    with open(path, "w") as module:
        for site in range(count):
            module.write(
                f"def site_{site}(slots, size):\n"
                f"    for index in range(len(slots)):\n"
                f"        slots[index] = bytes(size)\n"
                f"        bytes(size)\n"
            )
    spec = importlib.util.spec_from_file_location("sites", path)
    sites = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sites)
    kept = []
    reported = []
    block = bytes(1 << 20)
    for site in range(count):
        until = time.process_time() + 0.025
        while time.process_time() < until:
            zlib.crc32(block)
        size = sizes[site % len(sizes)]
        each = sys.getsizeof(bytes(size))
        slots = [None] * max(1, bytes_each // each)
        kept.append(slots)
        getattr(sites, f"site_{site}")(slots, size)
        reported.append(
            {
                "name": f"site {site}",
                "function": f"site_{site}",
                "file": os.path.basename(path),
                "line": 4 * site + 3,
                "liveBytes": each * len(slots),
                "allocatedBytes": each * len(slots),
            }
        )
    print(json.dumps({"pid": os.getpid(), "python": "", "maxRssBytes": 0, "sites": reported}), flush=True)
    os._exit(0)


main()
