"""A C extension, compiled here, that never frees its work area."""
import ctypes
import os
import pathlib
import shutil
import subprocess
import tempfile
import time

SECONDS = float(os.environ.get("LEAKBENCH_SECONDS", 34))
SOURCE = """
#include <stdlib.h>
#include <string.h>
struct result { double mean; double *work; };
double smooth(const double *values, int count) {
    struct result *result = malloc(sizeof *result);
    result->work = calloc(count, sizeof(double));
    for (int i = 0; i < count; i++) result->work[i] = values[i] / (1 + i % 7);
    result->mean = 0;
    for (int i = 0; i < count; i++) result->mean += result->work[i];
    return result->mean / count;
}
"""


def build(folder):
    source = pathlib.Path(folder, "smooth.c")
    source.write_text(SOURCE)
    library = str(source.with_suffix(".so"))
    subprocess.run([shutil.which("cc"), "-O1", "-shared", "-fPIC", "-o", library, source], check=True)
    return ctypes.CDLL(library)


def smooth_series(library, values):
    array = (ctypes.c_double * len(values))(*values)
    return library.smooth(array, len(values))


with tempfile.TemporaryDirectory() as folder:
    library = build(folder)
library.smooth.restype = ctypes.c_double
end = time.monotonic() + SECONDS
while time.monotonic() < end:
    smooth_series(library, [float(i) for i in range(1500)])
    time.sleep(0.015)
