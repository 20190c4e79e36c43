"""Limits on tests, by the real agent: what passes, what fails, and what the failure says."""

import asyncio
import mmap
import os
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
import unittest

from tidemark._limits import Growth, LimitError, Limits, Measured, parse_growth, parse_period, parse_size
from tidemark.testing import MemoryLimits, limit_growth, limit_memory, no_leaks

KIB, MIB = 1 << 10, 1 << 20
FREE_THREADED = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
kept = []


def measure(body, limits, period=1):
    measured = Measured(limits, period)
    with measured:
        for _ in measured.calls():
            body()
    return measured


class Words(unittest.TestCase):
    def test_sizes(self):
        sizes = (("24 MiB", 24 * MIB), ("1.5k", 1536), ("7B", 7), (4096, 4096))
        for text, size in (*sizes, ("2 GB", 2_000_000_000), ("2 GiB", 2 << 30)):
            self.assertEqual(parse_size(text, "limit"), size)
        for text in ("", "-1", "24 QiB", "MiB", "1e9", None, True, -5, 0, float("nan"), float("inf"), "0", [], "9" * 40):
            with self.assertRaisesRegex(LimitError, r"^limit takes a size such as '24 MiB', not [^\n]+$"):
                parse_size(text, "limit")

    def test_growths(self):
        self.assertEqual(parse_growth("1 KiB/call", "limit"), Growth(1024.0, 2, 5))
        self.assertEqual(parse_growth("8/call", "limit", warmup=0, calls=9), Growth(8.0, 0, 9))
        for text in ("1 KiB", "1 KiB/h", "x/call", "/call", "-1/call", None, 5):
            with self.assertRaisesRegex(LimitError, r"^limit takes a growth rate such as '1 KiB/call', not [^\n]+$"):
                parse_growth(text, "limit")
        for words in ({"calls": 0}, {"calls": "5"}, {"warmup": -1}, {"warmup": True}, {"calls": 10**9}):
            with self.assertRaisesRegex(LimitError, r"^limit takes (calls|warmup) as a whole number from \d on"):
                parse_growth("1/call", "limit", **words)

    def test_periods(self):
        self.assertEqual(parse_period("4K", "period"), 4096)
        with self.assertRaisesRegex(LimitError, "^period takes a size such as '4K', not 'often'$"):
            parse_period("often", "period")


@unittest.skipIf(FREE_THREADED, "a free-threaded build is refused")
class Peaks(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.was, tempfile.tempdir = tempfile.tempdir, self.folder.name

    def tearDown(self):
        self.assertEqual(os.listdir(self.folder.name), [])
        tempfile.tempdir = self.was
        self.folder.cleanup()
        kept.clear()

    def assertPeak(self, body, size, slack=4 * KIB):
        for _ in range(3):  # the agent comes and goes with each
            peak = measure(body, Limits(MIB << 20)).peak_bytes
            self.assertGreaterEqual(peak, size)
            self.assertLess(peak, size + slack)

    def test_one_block_is_exact(self):
        self.assertPeak(lambda: bytes(3 * MIB), 3 * MIB + sys.getsizeof(b""))

    def test_many_small_objects_are_exact(self):
        def body():
            rows = [None] * 10_000
            for number in range(len(rows)):
                rows[number] = b"%040d" % number

        size = 10_000 * sys.getsizeof(b"%040d" % 0) + sys.getsizeof([None] * 10_000)
        self.assertPeak(body, size)

    def test_the_peak_counts_and_not_the_end(self):
        def body():
            bytes(2 * MIB)
            bytes(5 * MIB)
            bytes(1 * MIB)

        self.assertPeak(body, 5 * MIB)

    def test_set_up_does_not_count(self):
        before = [bytes(1000) for _ in range(5000)]
        self.assertPeak(lambda: len(before), 0)

    def test_native_memory_and_mappings_count(self):
        import ctypes

        def body():
            libc = ctypes.CDLL(None)  # its functions are looked up here: a pointer saved before would bypass the agent
            libc.malloc.restype = ctypes.c_void_p
            libc.free.argtypes = [ctypes.c_void_p]
            libc.free(libc.malloc(4 * MIB))

        self.assertPeak(body, 4 * MIB, slack=64 * KIB)
        self.assertPeak(lambda: mmap.mmap(-1, 6 * MIB).close(), 6 * MIB)

    def test_threads_count(self):
        def body():
            barrier = threading.Barrier(3)

            def hold():
                block = bytes(2 * MIB)
                barrier.wait()
                return block

            threads = [threading.Thread(target=hold) for _ in range(3)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

        peak = measure(body, Limits(MIB << 20)).peak_bytes
        self.assertGreaterEqual(peak, 6 * MIB)

    def test_children_count_and_are_named(self):
        source = "import time; kept = bytearray(b'x') * (30 << 20); time.sleep(0.4)"
        measured = measure(lambda: subprocess.run([sys.executable, "-c", source], check=True), Limits(20 * MIB))
        (finding,) = measured.findings()
        self.assertRegex(finding.measured, r"MiB.* at the peak, .* of it in 1 child process$")
        self.assertGreater(measured.peak_bytes, 30 * MIB)

    def test_children_of_the_set_up_do_not_count(self):
        source = "import sys; kept = bytearray(b'x') * (30 << 20); print('up', flush=True); sys.stdin.read()"
        child = subprocess.Popen([sys.executable, "-c", source], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        try:
            child.stdout.readline()
            measured = measure(lambda: time.sleep(0.1), Limits(10 * MIB))
            self.assertEqual(measured.findings(), [])
        finally:
            child.communicate()

    def test_no_thread_and_no_child_is_added(self):
        threads, children = [], []

        def body():
            threads.append(len(os.listdir("/proc/self/task")))
            try:
                children.append(os.waitpid(-1, os.WNOHANG))
            except ChildProcessError:
                pass

        before = len(os.listdir("/proc/self/task"))
        measure(body, Limits(MIB))
        self.assertEqual((threads, children), ([before], []))

    def test_closed_descriptors_cost_the_children_of_one_test(self):
        def body():
            for number in Measured._watch._talk:
                os.close(number)

        source = "import time; kept = bytearray(b'x') * (30 << 20); time.sleep(0.4)"
        self.assertEqual(measure(body, Limits(MIB)).findings(), [])
        measured = measure(lambda: subprocess.run([sys.executable, "-c", source], check=True), Limits(20 * MIB))
        self.assertEqual(len(measured.findings()), 1)

    def test_a_killed_test_leaves_nothing(self):
        source = """
import os, signal
from tidemark._limits import Limits, Measured
measured = Measured(Limits(1 << 20))
with measured:
    for _ in measured.calls():
        os.kill(os.getpid(), signal.SIGKILL)
"""
        environment = {**os.environ, "TMPDIR": self.folder.name, "PYTHONPATH": os.pathsep.join(sys.path)}
        killed = subprocess.run([sys.executable, "-c", source], env=environment)
        self.assertEqual(killed.returncode, -9)
        patience = time.monotonic() + 30
        while os.listdir(self.folder.name) and time.monotonic() < patience:
            time.sleep(0.05)

    def test_a_fork_that_comes_back_judges_nothing(self):
        def body():
            if os.fork() == 0:
                os._exit(0)
            os.wait()

        self.assertEqual(measure(body, Limits(50 * MIB)).findings(), [])
        measured = Measured(Limits(MIB))
        out, into = os.pipe()
        with measured:
            for _ in measured.calls():
                kept = bytes(2 * MIB)
                child = os.fork()
        del kept
        if child == 0:  # came back from the body, as a careless test does
            os.write(into, b"%d" % len(measured.findings()))
            os._exit(0)
        os.waitpid(child, 0)
        self.assertEqual(os.read(out, 10), b"0")
        self.assertEqual(len(measured.findings()), 1)
        os.close(out)
        os.close(into)

    def test_a_finding_fits_on_a_screen_and_names_the_line(self):
        def load():
            return [bytes(1000) for _ in range(5000)]

        measured = measure(load, Limits(2 * MIB))
        (finding,) = measured.findings()
        text = finding.text(measured.sampling, "next command")
        lines = text.splitlines()
        self.assertLess(len(lines), 10)
        self.assertRegex(lines[0], r"^tidemark: limit_memory 2.00 MiB: 4\.\d+ MiB at the peak$")
        self.assertIn(f"test_limits.py:{load.__code__.co_firstlineno + 1}  return [bytes(1000)", lines[1])
        self.assertIn("recorded every allocation; children read every 10 ms", text)
        self.assertEqual(lines[-1], "  next: next command")

    def test_a_coarse_period_states_its_error(self):
        measured = measure(lambda: [bytes(600) for _ in range(20_000)], Limits(MIB), period=parse_period("16K", "period"))
        (finding,) = measured.findings()
        self.assertRegex(finding.measured, r"MiB \+-[\d.]+ [KM]iB at the peak")
        self.assertRegex(measured.sampling, r"^recorded one byte in [\d,]+;")
        self.assertLess(abs(measured.peak_bytes - 20_000 * 633), 0.25 * 20_000 * 633)

    def test_what_the_body_raises_comes_through(self):
        for error in (KeyError, SystemExit, KeyboardInterrupt):
            with self.assertRaises(error):
                measure(lambda: (_ for _ in ()).throw(error()), Limits(MIB))
        self.assertFalse(Measured.agent().is_armed())


@unittest.skipIf(FREE_THREADED, "a free-threaded build is refused")
class Growths(unittest.TestCase):
    def tearDown(self):
        kept.clear()

    def findings(self, body, limits):
        return measure(body, limits).findings()

    def test_a_leak_fails_and_is_named(self):
        def body():
            kept.append(bytearray(2000))

        (finding,) = self.findings(body, Limits(growth=parse_growth("1 KiB/call", "limit")))
        self.assertEqual(finding.limit, "limit_growth 1.00 KiB/call")
        self.assertRegex(finding.measured, r"^2\.\d\d KiB/call stay live \(.* in rounds of 5, 10, 20, 40 calls\)$")
        self.assertIn(f"test_limits.py:{body.__code__.co_firstlineno + 1}  kept.append", finding.lines[0])
        self.assertEqual(self.findings(body, Limits(growth=parse_growth("4 KiB/call", "limit"))), [])

    def test_a_cache_that_fills_is_no_leak(self):
        cache = {}
        numbers = iter(range(10**6))

        def body():
            cache[next(numbers) % 12] = bytearray(5000)

        self.assertEqual(self.findings(body, Limits(growth=parse_growth("100/call", "limit"))), [])
        self.assertEqual(self.findings(body, Limits(leaks=Growth(None))), [])

    def test_a_cache_that_becomes_full_in_the_last_round_is_no_leak(self):
        for size in (45, 60, 75):
            cache, numbers = {}, iter(range(10**6))

            def body():
                cache[next(numbers) % size] = bytearray(1000)

            self.assertEqual(self.findings(body, Limits(leaks=Growth(None))), [], size)

    def test_a_round_that_another_thread_disturbs_hides_no_leak(self):
        spare = []

        def body():
            number = next(numbers)
            kept.append(bytes(100))
            if number % 1000 == 1:
                spare.extend(bytes(3000) for _ in range(3))
            if number % 1000 == 4:
                spare.clear()

        numbers = iter(range(1000, 10**6))
        self.assertEqual(len(self.findings(body, Limits(leaks=Growth(None)))), 1)

    def test_growth_that_fades_is_none(self):
        numbers = iter(range(1, 10**6))

        def body():
            kept.append(bytearray(20_000 // next(numbers)))

        self.assertEqual(self.findings(body, Limits(growth=parse_growth("64/call", "limit"))), [])

    def test_no_leaks(self):
        def clean():
            rows = [bytes(n) for n in range(500)]
            rows.append(rows)  # a cycle

        def leaks():
            kept.append(object())

        self.assertEqual(self.findings(clean, Limits(leaks=Growth(None))), [])
        (finding,) = self.findings(leaks, Limits(leaks=Growth(None)))
        self.assertEqual(finding.limit, "no_leaks")

    def test_the_interpreter_s_own_caches_are_no_leak(self):
        path = os.path.join(tempfile.gettempdir(), "tidemark-test-limits")

        def body():
            with open(path, "w") as file:
                file.write("x" * 10_000)

        self.assertEqual(self.findings(body, Limits(leaks=Growth(None))), [])
        os.remove(path)

    def test_a_native_leak_fails(self):
        import ctypes

        libc = ctypes.CDLL(None)
        (finding,) = self.findings(lambda: libc.malloc(100), Limits(leaks=Growth(None)))
        self.assertRegex(finding.measured, r"^100 B/call stay live")

    def test_how_often_the_body_runs(self):
        calls = []
        self.findings(lambda: calls.append(1), Limits(MIB))
        self.assertEqual(len(calls), 1)
        calls.clear()
        self.findings(lambda: calls.append(1), Limits(growth=parse_growth("1 MiB/call", "limit", 3, 7)))
        self.assertEqual(len(calls), 1 + 3 + 7 + 14)
        numbers = [0]

        def clean():
            numbers[0] += 1

        self.findings(clean, Limits(leaks=Growth(None)))
        self.assertEqual(numbers, [1 + 2 + 5 + 10])


@unittest.skipIf(FREE_THREADED, "a free-threaded build is refused")
class MixIn(unittest.TestCase):
    def run_case(self, case):
        result = unittest.TestResult()
        unittest.defaultTestLoader.loadTestsFromTestCase(case).run(result)
        self.assertEqual(result.errors, [])
        return {test._testMethodName: text for test, text in result.failures}

    def test_limits_of_methods_and_classes(self):
        class Case(MemoryLimits, unittest.TestCase):
            memory_limit = "3 MiB"

            def setUp(self):
                self.block = bytes(20 * MIB)

            def test_default(self):
                bytes(4 * MIB)

            @limit_memory("8 MiB")
            def test_own(self):
                bytes(4 * MIB)

            @no_leaks
            def test_leaks(self):
                kept.append(bytes(100))

            @limit_growth("1 KiB/call", calls=3)
            def test_grows_little(self):
                kept.append(bytes(100))

            def test_fails_by_itself(self):
                self.fail("its own message")

        failures = self.run_case(Case)
        self.assertEqual(sorted(failures), ["test_default", "test_fails_by_itself", "test_leaks"])
        self.assertRegex(failures["test_default"], r"limit_memory 3\.00 MiB: 4\.0\d MiB( \+-[\d.]+ KiB)? at the peak")
        self.assertIn("next: tidemark run", failures["test_leaks"])
        self.assertIn("its own message", failures["test_fails_by_itself"])

    def test_asynchronous_tests(self):
        class Case(MemoryLimits, unittest.IsolatedAsyncioTestCase):
            @limit_memory("2 MiB")
            async def test_awaits(self):
                block = bytes(4 * MIB)
                await asyncio.sleep(0)
                del block

        self.assertRegex(self.run_case(Case)["test_awaits"], r"4\.0\d MiB( \+-[\d.]+ KiB)? at the peak")

    def test_a_runner_that_sets_the_method_finds_it_again(self):
        class Case(MemoryLimits, unittest.TestCase):
            memory_limit = "3 MiB"

            def test_any(self):
                pass

        case = Case("test_any")
        own = case.test_any
        case.test_any = own  # as pytest does, which deletes it afterwards
        case.run(unittest.TestResult())
        self.assertEqual(vars(case).get("test_any"), own)

    def test_nonsense_is_one_line(self):
        class Case(MemoryLimits, unittest.TestCase):
            memory_limit = "much"

            def test_any(self):
                pass

        failure = self.run_case(Case)["test_any"]
        self.assertIn("tidemark: memory_limit takes a size such as '24 MiB', not 'much'", failure)
        self.assertNotIn("During handling", failure)
        with self.assertRaises(LimitError):
            limit_memory("-1")

    def test_switched_off(self):
        class Case(MemoryLimits, unittest.TestCase):
            memory_limit = 1

            def test_any(self):
                pass

        os.environ["TIDEMARK_LIMITS"] = "off"
        try:
            self.assertEqual(self.run_case(Case), {})
        finally:
            del os.environ["TIDEMARK_LIMITS"]


if __name__ == "__main__":
    unittest.main()
