"""One interpreter under the agent, for the checks: runs programs in a folder that the interpreter can see, and
compares the agent's figures with the program's own."""

import math
import os
import shutil
import subprocess
import tempfile

from python_segment import read_pool

HERE = os.path.dirname(os.path.abspath(__file__))
EVENT_PERIOD = 3
# The probability that a correct estimate is called wrong. Every run checks a few hundred estimates.
FALSE_ALARMS = 1e-8


class Failure(Exception):
    pass


class Skipped(Exception):
    pass


def expect(condition, text):
    if not condition:
        raise Failure(text)


class Interpreter:
    """Runs the programs of python_programs/ under the agent in one interpreter."""

    def __init__(self, name, minor, prefix, command, root, library, layout):
        self.name, self.minor, self.layout = name, minor, layout
        self.prefix, self.command = prefix, command
        self.scratch = tempfile.mkdtemp(prefix="tidemark-python-", dir=os.path.join(root, "tmp") if root else None)
        self.inside = self.scratch[len(root):]
        shutil.copytree(os.path.join(HERE, "python_programs"), os.path.join(self.scratch, "programs"))
        package = os.path.join(HERE, "..", "..", "python")
        shutil.copytree(os.path.join(package, "tidemark"), os.path.join(self.scratch, "programs", "tidemark"))
        for test in os.listdir(os.path.join(package, "tests")):
            if test.endswith(".py"):
                shutil.copy(os.path.join(package, "tests", test), os.path.join(self.scratch, "programs"))
        self.library = shutil.copy(library, self.scratch)
        self.runs = 0

    def close(self):
        shutil.rmtree(self.scratch, ignore_errors=True)

    def run(self, program, options=(), environment=(), period=4096, agent=True, errors_on=None, native=False):
        """Output and segments of one run. The program must exit with 0, and every error that it writes
        must contain the words `errors_on`."""
        self.runs += 1
        pools = os.path.join(self.scratch, f"pools{self.runs}")
        os.mkdir(pools)
        variables = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", **dict(environment)}
        if agent:
            variables["TIDEMARK"] = f"period={period},dir={self.inside}/pools{self.runs}{',native' if native else ''}"
            variables["LD_PRELOAD"] = f"{self.inside}/{os.path.basename(self.library)}"
        settings = [f"{name}={value}" for name, value in variables.items()]
        ended = subprocess.run([*self.prefix, "/usr/bin/env", "-i", *settings, *self.command, *options,
                                f"{self.inside}/programs/{program}"],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=300)
        expect(ended.returncode == 0, f"{program} ended with {ended.returncode}: {ended.stderr[-600:]}")
        allowed = errors_on in ended.stderr if errors_on else not ended.stderr
        expect(allowed, f"{program} wrote: {ended.stderr[-600:]}")
        segments = [s for path in sorted(os.listdir(pools)) for s in read_pool(os.path.join(pools, path), self.layout)]
        expect(segments or not agent, f"{program} left no segment")
        return ended.stdout, segments


def estimate(segment, line, program):
    """Live bytes of the sites whose leaf is on one line of a program, and these sites."""
    sites = [s for s in segment.sites if s.stack and s.stack[0].line == line and s.stack[0].file.endswith(program)]
    return sum(s.live_bytes for s in sites), sites


def sampling_chance(segment, size):
    """The probability that an object is sampled, at the coarsest period that was in force."""
    periods = [live.period for live in segment.live]
    periods += [value for kind, value, _ in segment.events() if kind == EVENT_PERIOD]
    return 1 - math.exp(-size / max(periods))


def farthest(parts):
    """How far an estimate may be off. `parts`: (chance, value, count) of objects that are sampled with
    `chance` and then count as value / chance. Uses Bernstein's inequality, which assumes no normal distribution
    and so also holds for few samples: P(|error| >= t) <= 2 exp(-t^2 / 2 / (variance + most * t / 3))."""
    variance = sum(count * value * value * (1 - chance) / chance for chance, value, count in parts)
    bound = math.log(2 / FALSE_ALARMS)
    most = max(value / chance for chance, value, _ in parts) * bound / 3
    return most + math.sqrt(most * most + 2 * variance * bound)


def expect_bytes(segment, what, estimated, size, count, least, most):
    """Expects the estimate of `count` objects of `size` bytes to be `least` to `most` times the truth."""
    truth = size * count
    error = farthest([(sampling_chance(segment, size), size, count)])
    expect(truth * least - error < estimated < truth * most + error,
           f"{what}: {estimated:.0f} bytes live, {truth} are, and chance explains {error:.0f}")


def compile_program(source, program, *options):
    compiler = shutil.which("cc")
    if not compiler:
        return False
    subprocess.run([compiler, "-O1", "-w", "-fno-builtin", *options, os.path.join(HERE, "python_programs", source), "-o", program, "-ldl"],
                   check=True)
    return True


def barrier(python):
    """Builds barrier.c in the interpreter's folder: a program uses it to forbid its own system calls at exit."""
    if not compile_program("barrier.c", f"{python.scratch}/barrier.so", "-shared", "-fPIC"):
        raise Skipped("no C compiler")
    return f"{python.inside}/barrier.so"


def expect_barred(output):
    if output != "0\n":
        raise Skipped(f"the system gives no filters of system calls: {os.strerror(int(output))}")
