"""Tests of tidemark.torch without a device; run by test/gpu/torch_module.test.ts."""

import os
import subprocess
import sys
import tempfile
import threading
import unittest
import warnings

import tidemark.torch
from tidemark.torch import Watching


class Shares:
    """Devices whose figures the test sets."""

    def __init__(self, *shares):
        self.shares = list(shares)
        self.size = 100
        self.error = None
        self.closed = False

    def reserved_shares(self):
        return self.shares

    def write(self, path):
        if self.error:
            raise self.error
        with open(path, "wb") as file:
            file.write(b"x" * self.size)

    def close(self):
        self.closed = True


class Watch(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.devices = Shares(0.1, 0.2)

    def watching(self, budget=10_000, folder=None):
        return Watching(self.devices, 0.9, folder or self.folder.name, 60.0, budget)

    def files(self):
        return sorted(os.listdir(self.folder.name))

    def test_nothing_is_written_below_the_threshold(self):
        self.assertIsNone(self.watching().look(0.0))
        self.assertEqual(self.files(), [])

    def test_any_device_above_it_writes_one_and_then_rests(self):
        watching = self.watching()
        self.devices.shares[1] = 0.95
        self.assertTrue(watching.look(1000.0).endswith(f"tidemark-{os.getpid()}-threshold-1.pickle"))
        self.assertIsNone(watching.look(1059.0))
        self.assertIsNotNone(watching.look(1061.0))
        self.assertEqual(len(self.files()), 2)

    def test_the_budget_ends_it_with_one_warning(self):
        watching = self.watching(budget=150)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            paths = [watching.dump() for _ in range(4)]
        self.assertEqual([path is not None for path in paths], [True, True, False, False])
        self.assertEqual(len(said), 1)
        self.assertIn("size limit", str(said[0].message))

    def test_what_fails_neither_raises_nor_leaves_a_half_file(self):
        watching = self.watching()
        for error in (OSError(28, "No space left on device"), RuntimeError("driver")):
            self.devices.error = error
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self.assertIsNone(watching.dump("oom"))
        self.assertEqual(self.files(), [])
        self.devices.error = None
        self.assertIsNotNone(watching.dump("oom"))

    def test_a_dump_within_a_dump_does_not_wait(self):
        watching = self.watching()
        answers = []
        write = self.devices.write

        def again(path):
            thread = threading.Thread(target=lambda: answers.append(watching.dump("oom")))
            thread.start()
            thread.join(timeout=60)
            write(path)

        self.devices.write = again
        self.assertIsNotNone(watching.dump())
        self.assertEqual(answers, [None])

    def test_the_thread_looks_and_ends(self):
        self.devices.shares[0] = 0.99
        written = threading.Event()
        write = self.devices.write

        def tell(path):
            write(path)
            written.set()

        self.devices.write = tell
        with self.watching() as watching:
            watching.start(0.001)
            self.assertTrue(written.wait(60))
        self.assertTrue(self.devices.closed)
        self.assertFalse(watching._thread.is_alive())

    def ranks(self, **environment):
        """Sets what a launcher sets for this process."""
        job = {"MASTER_ADDR": "node-7", "MASTER_PORT": "29500", **environment}
        before = {name: os.environ.get(name) for name in job}
        os.environ.update(job)
        self.addCleanup(
            lambda: [
                os.environ.pop(name) if value is None else os.environ.__setitem__(name, value)
                for name, value in before.items()
            ]
        )

    def of_another_rank(self, folder=None, **environment):
        """Another process of the job, as if on another host, runs out of memory."""
        program = """
import sys, watching
from tidemark.torch import Watching
print(Watching(watching.Shares(0.5), 0.9, sys.argv[1], 60.0, 10_000).dump("oom"))
"""
        done = subprocess.run(
            [sys.executable, "-c", program, folder or self.folder.name],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment},
            stdout=subprocess.PIPE,
            check=True,
        )
        return os.path.basename(done.stdout.decode().strip())

    def test_a_rank_that_wrote_one_asks_the_others_once(self):
        self.ranks(RANK="0")
        self.of_another_rank(RANK="3")  # before this one began
        watching = self.watching()
        self.assertIsNone(watching.look(1000.0))
        asks = self.of_another_rank(RANK="3")
        self.assertRegex(asks, r"^tidemark-[0-9a-f]{6}-rank3-\d+-oom-1\.pickle$")
        answer = watching.look(1001.0)
        job = asks.split("-rank3-")[0]
        self.assertEqual(os.path.basename(answer), f"{job}-rank0-{os.getpid()}-peer-1.pickle")
        # The same error reported another way, read again, or requested by another rank causes nothing more.
        self.assertIsNone(watching.answer(1002.0))
        self.assertIsNone(watching.look(1003.0))
        self.of_another_rank(RANK="2")
        self.assertIsNone(watching.look(1004.0))
        self.of_another_rank(RANK="2")
        self.assertIsNotNone(watching.look(1062.0))

    def test_nobody_else_asks(self):
        self.ranks(RANK="0")
        watching = self.watching()
        self.assertIsNone(watching.look(1000.0))
        own = watching.dump("oom")
        self.of_another_rank(RANK="3", MASTER_PORT="29501")  # another job
        self.of_another_rank(RANK="3", TORCHELASTIC_RUN_ID="b")
        self.of_another_rank(MASTER_ADDR="")  # a program by itself
        answer = own.replace("-rank0-", "-rank3-").replace("-oom-", "-peer-")
        open(answer, "wb").close()
        self.assertIsNone(watching.look(1001.0))
        os.unlink(answer)
        self.assertIsNone(watching.look(1002.0))

    def test_a_folder_that_is_made_later(self):
        self.ranks(RANK="0")
        later = os.path.join(self.folder.name, "later")
        watching = self.watching(folder=later)
        self.assertIsNone(watching.look(1000.0))
        self.of_another_rank(folder=later, RANK="3")
        self.assertIn("-rank0-", watching.look(1001.0))

    def test_a_threshold_that_is_no_share_is_refused(self):
        for threshold in (0, 1.5, -1):
            self.assertRaises(ValueError, tidemark.torch.watch, threshold=threshold)


def _meet(rank, folder):
    """The body of each of two processes: the second runs out of memory, and the first is notified."""
    import torch.distributed as distributed

    os.environ.update({"MASTER_ADDR": "localhost", "MASTER_PORT": "29507"})
    meet = distributed.FileStore(os.path.join(folder, "meet"), 2)
    distributed.init_process_group("gloo", store=meet, rank=rank, world_size=2)
    watching = Watching(Shares(0.5), 0.9, folder, 60.0, 10_000)
    watching.look()
    distributed.barrier()
    if rank == 1:
        watching.dump("oom")
    distributed.barrier()
    watching.look()
    distributed.barrier()
    distributed.destroy_process_group()


@unittest.skipUnless("with-torch" in os.environ.get("TIDEMARK_GPU_TEST", ""), "no torch here")
class WithTorch(unittest.TestCase):
    def test_without_a_device_it_says_so_and_the_program_runs_on(self):
        import torch

        if torch.cuda.is_available():
            self.skipTest("a device is here")
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            watching = tidemark.torch.watch()
            self.assertIsNone(watching.dump())
            watching.close()
        self.assertIn("no CUDA device", str(said[0].message))

    def test_every_function_that_is_asked_of_torch_is_there(self):
        """Functions that need a device cannot be called here, but their existence and parameters can be checked."""
        import inspect

        import torch

        memory = torch.cuda.memory
        for owner, names in (
            (torch._C, "_cuda_getDeviceCount _cuda_hasPrimaryContext _cuda_isHistoryEnabled"),
            (torch._C, "_cuda_attach_out_of_memory_observer"),
            (torch.cuda, "is_initialized _lazy_call device_count get_device_properties"),
            (torch.cuda, "memory_reserved mem_get_info"),
            (memory, "memory_stats_as_nested_dict host_memory_stats get_allocator_backend"),
            (memory, "_dump_snapshot"),
        ):
            for name in names.split():
                self.assertTrue(callable(getattr(owner, name, None)), name)
        inspect.signature(memory.memory_snapshot).bind(include_traces=False)
        record = inspect.signature(memory._record_memory_history_impl)
        record.bind("all", max_entries=10, stacks="python")
        record.bind(None)

    def test_the_rank_is_what_the_program_told_torch(self):
        """Two processes started by torch itself, without a rank from a launcher: each knows its own rank."""
        import torch.distributed
        import torch.multiprocessing

        if not torch.distributed.is_gloo_available():
            self.skipTest("no gloo in this torch")
        with tempfile.TemporaryDirectory() as folder:
            torch.multiprocessing.spawn(_meet, (folder,), nprocs=2)
            names = sorted(name for name in os.listdir(folder) if name != "meet")
        self.assertEqual(len(names), 2, names)
        self.assertRegex(names[0], r"^tidemark-[0-9a-f]{6}-rank0-\d+-peer-1\.pickle$")
        self.assertRegex(names[1], r"^tidemark-[0-9a-f]{6}-rank1-\d+-oom-1\.pickle$")

    def test_a_step_is_a_mark_of_the_profiler(self):
        import torch

        with torch.profiler.profile() as profile:
            with tidemark.torch.step("train"):
                torch.ones(3).sum()
        self.assertIn("tidemark step train", [event.key for event in profile.key_averages()])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
