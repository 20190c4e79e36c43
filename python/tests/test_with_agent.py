"""The package where the agent is preloaded: what stands in the label variable, and when.

That samples carry these labels is tested with the agent (agent/test/python_check.py).
"""

import asyncio
import contextvars
import inspect
import unittest

import tidemark

if tidemark._agent:
    from tidemark import _agent


def in_force():
    text = _agent._labels.get()
    return dict(pair.split("\x1f") for pair in text.split("\x1e")) if text else {}


@unittest.skipUnless(tidemark._agent, "no agent is preloaded")
class Labels(unittest.TestCase):
    def test_nest_and_end(self):
        with tidemark.label(a=1, b="x"):
            self.assertEqual(in_force(), {"a": "1", "b": "x"})
            with tidemark.label(a=2):
                self.assertEqual(in_force(), {"a": "2", "b": "x"})
            self.assertEqual(in_force(), {"a": "1", "b": "x"})
        self.assertEqual(in_force(), {})

    def test_end_by_exception(self):
        with self.assertRaises(KeyError):
            with tidemark.label(a=1):
                raise KeyError
        self.assertEqual(in_force(), {})

    def test_odd_values(self):
        class Unprintable:
            def __str__(self):
                raise ValueError

        class Text(str):
            pass

        with tidemark.label(a=Unprintable(), b="x" * 1000, c="p\x1eq\x1fr", d=None, e=Text("t"), f="\udc80"):
            found = in_force()
            self.assertIs(type(_agent._labels.get()), str)
        self.assertEqual(found, {"a": "Unprintable", "b": "x" * 200, "c": "p q r", "d": "None", "e": "t", "f": "\udc80"})

    def test_empty(self):
        with tidemark.label():
            self.assertEqual(in_force(), {})

    def test_decorators_keep_the_function(self):
        def plain(a, *, b=2):
            "words"
            return a, b, in_force()

        labelled = tidemark.label(k="v")(plain)
        self.assertEqual(labelled(1, b=3), (1, 3, {"k": "v"}))
        self.assertEqual((labelled.__name__, labelled.__doc__), ("plain", "words"))
        self.assertEqual(inspect.signature(labelled), inspect.signature(plain))

        async def coroutine():
            await asyncio.sleep(0)
            return in_force()

        self.assertTrue(inspect.iscoroutinefunction(tidemark.label(k="v")(coroutine)))
        self.assertEqual(asyncio.run(tidemark.label(k="v")(coroutine)()), {"k": "v"})

    def test_generator(self):
        closed = []

        @tidemark.label(k="v")
        def generator():
            try:
                sent = yield in_force()
                try:
                    yield sent
                except KeyError:
                    yield in_force()
            finally:
                closed.append(in_force())
            return "end"

        running = generator()
        self.assertEqual(next(running), {"k": "v"})
        self.assertEqual(in_force(), {})
        self.assertEqual(running.send(5), 5)
        self.assertEqual(running.throw(KeyError()), {"k": "v"})
        with self.assertRaises(StopIteration) as end:
            next(running)
        self.assertEqual(end.exception.value, "end")
        dropped = generator()
        next(dropped)
        dropped.close()
        self.assertEqual(closed, [{"k": "v"}, {"k": "v"}])
        self.assertEqual(in_force(), {})

    def test_one_label_in_many_tasks(self):
        label = tidemark.label(k="v")

        async def task(first, second):
            with label:
                await asyncio.sleep(first)
                self.assertEqual(in_force(), {"k": "v"})
            self.assertEqual(in_force(), {})
            async with label, tidemark.label(n=first):
                await asyncio.sleep(second)
                self.assertEqual(in_force(), {"k": "v", "n": str(first)})
            self.assertEqual(in_force(), {})

        async def main():
            await asyncio.gather(*(task(i % 3 / 1000, i % 5 / 1000) for i in range(20)))

        asyncio.run(main())

    def test_other_contexts(self):
        with tidemark.label(k="v"):
            self.assertEqual(contextvars.copy_context().run(in_force), {"k": "v"})
            self.assertEqual(contextvars.Context().run(in_force), {})


@unittest.skipUnless(tidemark._agent, "no agent is preloaded")
class Steps(unittest.TestCase):
    def test_numbers_and_label(self):
        numbers = []
        for _ in range(3):
            with tidemark.step("counted") as step:
                numbers.append(step._number)
                self.assertEqual(in_force(), {"step": "counted"})
        self.assertEqual(numbers, [1, 2, 3])
        self.assertEqual(in_force(), {})
        with tidemark.step("other") as step:
            self.assertEqual(step._number, 1)

    def test_a_bare_step_is_kept_until_the_next(self):
        first = tidemark.step("bare")
        self.assertIn(first, _agent._bare.values())
        second = tidemark.step("bare")
        self.assertNotIn(first, _agent._bare.values())
        self.assertIn(second, _agent._bare.values())

    def test_odd_names(self):
        for name in ("", "a\0b", "\udc80", 7):
            with tidemark.step(name):
                pass


if __name__ == "__main__":
    unittest.main()
