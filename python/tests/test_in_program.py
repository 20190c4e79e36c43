"""Recording and measuring from inside a program, by the real agent and the real `tidemark`."""

import asyncio
import json
import os
import re
import subprocess
import sys
import sysconfig
import tempfile
import threading
import unittest

import tidemark

MIB = 1 << 20
FREE_THREADED = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))


def run_program(source, **environment):
    folder = os.path.dirname(os.path.dirname(tidemark.__file__))
    with tempfile.TemporaryDirectory() as place:
        path = os.path.join(place, "program.py")
        with open(path, "w") as file:
            file.write(source)
        return subprocess.run([sys.executable, path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              env={**os.environ, "PYTHONPATH": folder, "TMPDIR": place, **environment})


def fill(count):
    return [bytes(1000 + n % 100) for n in range(count)]


def pools():
    return [name for name in os.listdir(tempfile.gettempdir()) if name.startswith("tidemark-")]


@unittest.skipIf(FREE_THREADED, "a free-threaded build is refused")
class InProgram(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.was, tempfile.tempdir = tempfile.tempdir, self.folder.name

    def tearDown(self):
        tidemark.stop()
        self.assertEqual(pools(), [])
        tempfile.tempdir = self.was
        self.folder.cleanup()

    def test_compare_finds_the_line_that_keeps(self):
        tidemark.start(period="4K")
        before = tidemark.snapshot()
        kept = fill(10_000)
        after = tidemark.snapshot()
        comparison = tidemark.compare(before, after)
        first = comparison.top(1)[0]
        self.assertEqual((first.file, first.line), (__file__, fill.__code__.co_firstlineno + 1))
        self.assertFalse(first.is_noise)
        size = sum(map(sys.getsizeof, kept))
        self.assertLess(abs(first.growth_bytes - size), 5 * first.error_bytes + 0.02 * size)
        self.assertIn("bytes(1000", str(comparison))
        del kept
        shrunk = tidemark.compare(after, tidemark.snapshot())
        self.assertLess(abs(shrunk.growth_bytes + size), 5 * shrunk.error_bytes + 0.05 * size)

    def test_snapshots_of_two_recordings_are_not_compared(self):
        tidemark.start()
        before = tidemark.snapshot()
        tidemark.stop()
        tidemark.start()
        with self.assertRaisesRegex(ValueError, "two recordings"):
            tidemark.compare(before, tidemark.snapshot())

    def test_a_period_that_is_not_a_size(self):
        for period in ("abc", 0, -5, 1.5):
            with self.assertRaisesRegex(ValueError, "such as '64K', not"):
                tidemark.start(period=period)

    def test_a_block_that_fails_gives_the_reason(self):
        with self.assertRaises(KeyError), tidemark.measure() as measured:
            raise KeyError
        self.assertIn("only RSS was measured: the block ended with KeyError", str(measured))
        self.assertIn("not measured yet", repr(tidemark.measure()))

    def test_compare_names_what_it_takes(self):
        tidemark.start()
        taken = tidemark.snapshot()
        for pair in ((taken, None), (None, taken), (taken, "a.tidemark")):
            with self.assertRaisesRegex(TypeError, r"takes two snapshots.*not (NoneType|str)"):
                tidemark.compare(*pair)

    def test_what_a_library_allocates_counts_for_the_line_that_calls_it(self):
        text = json.dumps([n * 1000 for n in range(100_000)])
        tidemark.start(period="4K")
        kept = json.loads(text)
        line = tidemark.snapshot().top(1)[0]
        self.assertEqual((line.file, len(kept)), (__file__, 100_000))

    def test_snapshot_without_start_says_what_to_do(self):
        with self.assertRaisesRegex(RuntimeError, "tidemark.start"):
            tidemark.snapshot()

    def test_start_and_stop_any_number_of_times(self):
        for _ in range(3):
            tidemark.start()
            tidemark.start()
            kept = fill(20_000)
            self.assertGreater(tidemark.snapshot().live_bytes, 10 * MIB)
            tidemark.stop()
            tidemark.stop()
            del kept

    def test_measure_a_block(self):
        with tidemark.measure() as measured:
            kept = fill(10_000)
            bytearray(64 * MIB)  # gone at once
        size = sum(map(sys.getsizeof, kept))
        self.assertLess(abs(measured.growth_bytes - size), 5 * measured.error_bytes + 0.05 * size)
        self.assertGreater(measured.peak_growth_bytes, 60 * MIB)
        self.assertIn("peak RSS", str(measured))
        del kept

    def test_measure_a_call_hands_on_results_and_exceptions(self):
        measured = tidemark.measure(sorted, [3, 1, 2], reverse=True)
        self.assertEqual(measured.result, [3, 2, 1])
        with self.assertRaises(ZeroDivisionError):
            tidemark.measure(lambda: 1 / 0)

    def test_measure_by_line(self):
        def work(count):
            kept = fill(count)
            bytearray(64 * MIB)
            return kept

        measured = tidemark.measure(work, 10_000)
        size = sum(map(sys.getsizeof, measured.result))
        lines = {line.line: line for line in measured.lines() if line.file == __file__}
        first = work.__code__.co_firstlineno
        kept = lines[fill.__code__.co_firstlineno + 1]
        self.assertLess(abs(kept.growth_bytes - size), 5 * kept.error_bytes + 0.05 * size)
        self.assertGreater(kept.allocated_bytes, 0.9 * size)
        self.assertGreater(kept.python_share, 0.9)
        freed = lines[first + 2]
        self.assertEqual((freed.growth_bytes, freed.peak_bytes >= 64 * MIB), (0, True))
        self.assertGreater(measured.allocated_bytes, 64 * MIB + 0.9 * size)
        self.assertRegex(str(measured), r"growth +\+- +at peak +allocated +python +line")
        self.assertNotIn("tidemark/_", str(measured))

    def test_nested_measurements_know_no_peak_by_line(self):
        with tidemark.measure() as outer:
            with tidemark.measure() as inner:
                kept = fill(10_000)
        self.assertEqual({line.peak_bytes for line in inner.lines()}, {None})
        self.assertGreater(outer.lines()[0].peak_bytes, 0)
        self.assertEqual(len(kept), 10_000)

    def test_own_work_is_left_out(self):
        tidemark.start(period="4K")
        for _ in range(3):
            taken = tidemark.snapshot()
        files = {frame.file for site in taken.sites for frame in site.stack}
        self.assertFalse([file for file in files if file.endswith("tidemark/_program.py")])

    def test_a_thread_and_a_task_may_ask(self):
        tidemark.start(period="4K")
        found = []
        thread = threading.Thread(target=lambda: found.append(tidemark.snapshot()))
        thread.start()
        thread.join()

        async def main():
            return tidemark.snapshot()

        found.append(asyncio.run(main()))
        self.assertEqual(len(found), 2)

    def test_labels_work_once_started(self):
        printed = run_program(
            "import tidemark\n"
            "tidemark.start(period='4K')\n"
            "with tidemark.label(endpoint='/search'):\n"
            "    kept = [bytes(1000) for n in range(5000)]\n"
            "from tidemark import _agent\n"
            "print(_agent is not None and tidemark.label(a=1) is not tidemark.label(a=1))\n")
        self.assertEqual((printed.stdout, printed.stderr), ("True\n", ""))

    def test_a_forked_child_says_that_it_is_not_recorded(self):
        tidemark.start()
        there, here = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                tidemark.snapshot()
                said = "no error"
            except RuntimeError as error:
                said = str(error)
            os.write(here, said.encode())
            os._exit(0)
        os.close(here)
        with os.fdopen(there) as answer:
            self.assertIn("tidemark.start()", answer.read())
        os.waitpid(child, 0)
        self.assertGreater(tidemark.snapshot().rss_bytes, 0)


@unittest.skipIf(FREE_THREADED, "a free-threaded build is refused")
class Programs(unittest.TestCase):
    PROFILED = (
        "import sys, tidemark\n"
        "on = tidemark.enabled_by('PROFILE_MEMORY', period=1)\n"
        "@tidemark.profile\n"
        "def load():\n"
        "    rows = [bytes(1000) for n in range(5000)]\n"
        "    return rows[:10]\n"
        "kept = load()\n"
        "measured = tidemark.measure(load)\n"
        "print(on, len(measured.result), measured.growth_bytes is None, '_tidemark_agent' in str(sys.modules), "
        "any('libtidemark' in line for line in open('/proc/self/maps')))\n"
    )

    def test_a_period_of_one_is_exact(self):
        ended = run_program(
            "import sys, tidemark\n"
            "tidemark.start(period=1)\n"
            "kept = [bytes(1000 + n % 100) for n in range(10_000)]\n"
            "for _ in range(200_000): bytearray(700)  # soon freed: a budget would make samples rare\n"
            "line = next(line for line in tidemark.snapshot().lines() if line.line == 3)\n"
            "size = sum(map(sys.getsizeof, kept)) + sys.getsizeof(kept)\n"
            "print(abs(line.live_bytes - size) < 0.001 * size, line.error_bytes < 0.001 * size, line)\n")
        self.assertEqual(ended.stdout[:9], "True True", ended.stdout + ended.stderr)

    def test_profile_prints_the_lines_of_a_function(self):
        ended = run_program(self.PROFILED, PROFILE_MEMORY="1")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertTrue(ended.stdout.startswith("True 10 False"), ended.stdout)
        self.assertRegex(ended.stderr, r"tidemark: load \(.*program\.py:[34]\)")
        # Up to Python 3.10, the code of a comprehension keeps the frame of its last call.
        self.assertRegex(ended.stderr, r" 20\.[26] KiB .* +1\d\.\d MiB +\d+% +5  rows = ")

    def test_growth_per_execution_of_a_line(self):
        kept = []

        def keep(count):
            for _ in range(count):
                kept.append(bytearray(10_000))
                size = sum([len(each) for each in kept[-5:]])
            return size

        with tidemark.measure(executions=keep) as measured:
            threads = [threading.Thread(target=keep, args=(50,)) for _ in range(4)]
            for thread in threads:
                thread.start()
            keep(200)
            for thread in threads:
                thread.join()
        (line,) = [each for each in measured.lines() if each.growth_bytes > MIB]
        self.assertEqual((line.executions, measured.problem), (400, ""))
        self.assertAlmostEqual(line.growth_each_bytes, 10_000, delta=1_500)
        self.assertRegex(str(measured), r"times +each +line\n.* 400 +\+\S+ KiB ")
        self.assertEqual({each.executions for each in tidemark.measure(fill, 2000).lines()}, {None})
        for wrong in (len, "keep", [keep, 3]):
            with self.assertRaisesRegex(TypeError, "executions takes a Python function"):
                tidemark.measure(executions=wrong)

    def test_executions_where_another_tool_is_in_the_way(self):
        def work():
            return [bytes(1000) for _ in range(2000)]

        before = sys.gettrace()
        monitoring = getattr(sys, "monitoring", None)
        if monitoring is None:
            sys.settrace(lambda frame, event, argument: None)
        else:
            for tool in (3, 4):
                monitoring.use_tool_id(tool, "another")
        try:
            with tidemark.measure(executions=work) as measured:
                kept = work()
        finally:
            if monitoring is None:
                sys.settrace(before)
            else:
                for tool in (3, 4):
                    monitoring.free_tool_id(tool)
        self.assertRegex(measured.problem, "executions are not counted")
        self.assertEqual({line.executions for line in measured.lines()}, {None})
        self.assertEqual(len(kept), 2000)

    def test_profile_lists_a_function_once_and_below_its_decorators(self):
        ended = run_program(
            "import functools, tidemark\nkept = []\n"
            "def make(size):\n    @tidemark.profile\n    def inner():\n        kept.append(bytearray(size))\n"
            "    return inner\nfor _ in range(3): make(1 << 20)()\n"
            "class Table:\n    @tidemark.profile\n    @functools.lru_cache\n    def fill(self):\n"
            "        kept.append(bytearray(2 << 20))\nTable().fill()\n")
        self.assertEqual(ended.stderr.count("tidemark: "), 2, ended.stderr)
        self.assertRegex(ended.stderr, r"inner \(.*\n.*live now +\+-[\s\S]* 6  kept[\s\S]*fill \([\s\S]*13  kept")
        # On a busy machine fewer blocks are sampled, so the figures have an error.
        units = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20}
        rows = re.findall(r"^ +([\d.]+) MiB +([\d.]+) (B|KiB|MiB) .*kept", ended.stderr, re.MULTILINE)
        for (live, error, unit), expected in zip(rows, (3, 2)):
            allowed = 4 * float(error) * units[unit] / (1 << 20) + 0.01
            self.assertAlmostEqual(float(live), expected, delta=allowed, msg=ended.stderr)
        self.assertEqual(len(rows), 2, ended.stderr)

    def test_profile_with_executions(self):
        ended = run_program(
            "import tidemark\nkept = []\n@tidemark.profile(executions=True)\ndef keep():\n"
            "    kept.append(bytearray(50_000))\nfor _ in range(40): keep()\n")
        self.assertRegex(ended.stderr, r"times +each +line\n.* 40 +\+\S+ KiB +5  kept\.append")

    def test_the_call_of_a_decorator_is_not_of_the_function(self):
        ended = run_program(
            "import tidemark\nkept = []\ndef registered(function):\n    kept.append(bytearray(3 << 20))\n"
            "    return function\n@registered\n@tidemark.profile\ndef keep():\n    kept.append(bytearray(2 << 20))\nkeep()\n")
        self.assertRegex(ended.stderr, r"tidemark: keep \(.*:6\)\n.*\n +2\.00 MiB .* 9  kept\.append.*\n$")

    def test_switched_off_nothing_is_loaded(self):
        for value in ("", "0", "off"):
            ended = run_program(self.PROFILED, PROFILE_MEMORY=value)
            self.assertEqual((ended.stdout, ended.stderr), ("False 10 True False False\n", ""))

    def test_where_the_program_of_tidemark_is_missing(self):
        with tempfile.TemporaryDirectory() as place:
            folder = os.path.dirname(tidemark.__file__)
            package = os.path.join(place, "tidemark")
            os.mkdir(package)
            for name in os.listdir(folder):
                if name.endswith(".py"):
                    with open(os.path.join(folder, name)) as source, open(os.path.join(package, name), "w") as copy:
                        copy.write(source.read())
            program = """
import tidemark
try: tidemark.start()
except RuntimeError as error: print(error)
@tidemark.profile
def one(): return 1
@tidemark.profile
def two(): return one() + 1
with tidemark.measure() as block: pass
measured = tidemark.measure(two)
print(measured.result, measured.lines(), block.growth_bytes, measured)
"""
            ended = subprocess.run([sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, {place!r})\n{program}"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={"PATH": "/nowhere"})
        first, second, reason = ended.stdout.splitlines()
        self.assertRegex(first, "libtidemark.so is not installed here.*pip install tidemark-profiler$")
        self.assertRegex(second, r"^2 \[\] None peak RSS ")
        self.assertEqual(reason, f"only RSS was measured: {first}")
        # A decorator leaves the program running, and the reason is printed once.
        self.assertEqual(ended.stderr, f"tidemark: no figures for @tidemark.profile: {first}\n")

    def test_a_recorded_program_may_measure_itself(self):
        launcher = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(tidemark.__file__))), "bin", "tidemark")
        with tempfile.TemporaryDirectory() as place:
            path = os.path.join(place, "program.py")
            with open(path, "w") as file:
                file.write("import tidemark, json\n"
                           "with tidemark.measure() as m:\n"
                           "    kept = [bytes(1000) for n in range(20000)]\n"
                           "tidemark.stop()\n"
                           "print(json.dumps(m.growth_bytes))\n")
            recording = os.path.join(place, "r.tidemark")
            ended = subprocess.run([launcher, "run", "--quiet", "-o", recording, "--",
                                    sys.executable, path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   env={**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(tidemark.__file__))})
            summary = json.loads(subprocess.run([launcher, "summary", recording, "--json"], stdout=subprocess.PIPE).stdout)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertGreater(json.loads(ended.stdout), 10 * MIB)
        # The process that read the profile is not the program's. Between its fork and its exec it may be seen as one, with
        # the memory of the program; what it reads with is larger.
        program, *others = summary["processes"]
        self.assertTrue(program["profiled"])
        for each in others:
            self.assertFalse(each["profiled"])
            self.assertLessEqual(each["peakRssBytes"] or 0, program["peakRssBytes"])


@unittest.skipUnless(FREE_THREADED, "not a free-threaded build")
class FreeThreaded(unittest.TestCase):
    def test_is_refused_in_one_line(self):
        with self.assertRaisesRegex(RuntimeError, "free-threaded build"):
            tidemark.start()
        measured = tidemark.measure(fill, 100)
        self.assertEqual(len(measured.result), 100)
        self.assertRegex(str(measured), r"^peak RSS .*\nonly RSS was measured: .*free-threaded build[^\n]*$")


if __name__ == "__main__":
    unittest.main()
