"""Programs that look like an interpreter but are not one that the agent supports: each must be refused."""

import os
import subprocess
import tempfile

from python_segment import LIMIT_FREE_THREADED, LIMIT_MISMATCH, LIMIT_UNKNOWN, REFUSED, read_pool
from python_trial import compile_program, expect


def check_pretenders(library, layout):
    """Unknown versions, builds and offsets: only native memory is sampled, and the reason is reported."""
    cases = [
        ("3.8.18 (default, x) [GCC]", "xdebugpy", 0, LIMIT_UNKNOWN),
        ("3.99.0 (main, x) [GCC]", "xdebugpy", 0, LIMIT_UNKNOWN),
        ("3.15.0a3+ (main, x) [GCC]", "xdebugpy", 0, LIMIT_UNKNOWN),
        ("4.0.0 (main, x) [GCC]", "xdebugpy", 0, LIMIT_UNKNOWN),
        ("nonsense", "xdebugpy", 0, LIMIT_UNKNOWN),
        ("3.14.0 free-threading build (main, x) [GCC]", "xdebugpy", 0x030E00F0, LIMIT_FREE_THREADED),
        ("3.13.1 experimental free-threading build (main, x) [GCC]", "xdebugpy", 0x030D01F0, LIMIT_FREE_THREADED),
        ("3.14.0 (main, x) [GCC]", "otherpie", 0x030E00F0, LIMIT_MISMATCH),
        ("3.14.0 (main, x) [GCC]", "xdebugpy", 0x030D00F0, LIMIT_MISMATCH),
        ("3.14.0 (main, x) [GCC]", "xdebugpy", 0x030E00F0, LIMIT_MISMATCH),
    ]
    for version, cookie, word, limit in cases:
        with tempfile.TemporaryDirectory() as scratch:
            program = os.path.join(scratch, "pretender")
            compile_program("pretender.c", program, "-rdynamic", f'-DVERSION="{version}"', f'-DCOOKIE="{cookie}"',
                            f"-DWORD={word}u")
            expect_refused([program], version, limit, scratch, library, layout)


def check_late_pretender(library, layout):
    """A host loads an unknown version late: the agent refuses it by its version number and does not wait for it."""
    with tempfile.TemporaryDirectory() as scratch:
        host, pretender = os.path.join(scratch, "host"), os.path.join(scratch, "pretender.so")
        compile_program("host.c", host)
        compile_program("pretender.c", pretender, "-shared", "-fPIC", '-DCOOKIE="xdebugpy"', "-DWORD=0u", "-DNUMBER=0x036300F0")
        segment = expect_refused([host, pretender, "/dev/null"], "3.99.0, late", LIMIT_UNKNOWN, scratch, library, layout)
        expect("3.99.0" in segment.log, f"log {segment.log!r}")


def expect_refused(command, version, limit, scratch, library, layout):
    ended = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60,
                           env={"LD_PRELOAD": os.path.abspath(library), "TIDEMARK": f"period=65536,dir={scratch}"})
    expect((ended.returncode, ended.stdout, ended.stderr) == (0, "fine\n", ""),
           f"{version}: ended with {ended.returncode}: {ended.stderr}")
    pools = [os.path.join(scratch, name) for name in os.listdir(scratch) if name.endswith(".pool")]
    (segment,) = read_pool(pools[0], layout)
    expect(segment.python_state == REFUSED, f"{version}: python_state {segment.python_state}")
    expect(segment.limits & (LIMIT_UNKNOWN | LIMIT_FREE_THREADED | LIMIT_MISMATCH) == limit,
           f"{version}: limits {segment.limits:#x}")
    expect("its frames are left out" in segment.log, f"{version}: log {segment.log!r}")
    expect(sum(site.live_bytes for site in segment.sites) > 10_000_000, f"{version}: native memory is missing")
    return segment
