"""The package where no agent is: nothing is loaded, nothing changes."""

import asyncio
import os
import subprocess
import sys
import unittest

import tidemark


@unittest.skipIf(tidemark._agent, "an agent is preloaded")
class WithoutAgent(unittest.TestCase):
    def test_import_loads_nothing_else(self):
        program = "import os, sys; before = set(sys.modules); import tidemark; print(sorted(set(sys.modules) - before))"
        folder = os.path.dirname(os.path.dirname(tidemark.__file__))
        printed = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, check=True,
                                 env={**os.environ, "PYTHONPATH": folder}).stdout
        loaded = eval(printed)  # the program's own list
        self.assertIn("tidemark", loaded)
        self.assertNotIn("ctypes", loaded)
        self.assertNotIn("tidemark._agent", loaded)
        self.assertNotIn("contextvars", loaded)

    def test_everything_gives_the_same_object(self):
        self.assertIs(tidemark.label(a=1), tidemark.label(b=2))
        self.assertIs(tidemark.step("train"), tidemark.step("test"))

    def test_an_attached_agent_that_cannot_be_talked_to_is_none(self):
        try:
            tidemark._expect_agent("/nowhere/libtidemark.so")
            self.assertIsNotNone(tidemark._agent)
            self.assertIs(tidemark.label(a=1), tidemark._NO_LABEL)
            self.assertIsNone(tidemark._agent)
        finally:
            tidemark._agent = tidemark._library_path = None

    def test_decorator_gives_the_function_back(self):
        def function():
            return 1

        self.assertIs(tidemark.label(a=1)(function), function)

    def test_blocks_run_and_exceptions_pass(self):
        with tidemark.label(a=1), tidemark.step("train"):
            pass
        with self.assertRaises(KeyError):
            with tidemark.label(a=1):
                raise KeyError

        async def main():
            async with tidemark.label(a=1), tidemark.step("train"):
                return 2

        self.assertEqual(asyncio.run(main()), 2)


if __name__ == "__main__":
    unittest.main()
