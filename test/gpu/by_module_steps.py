"""``tidemark.torch.by_module`` with the real torch on the CPU, compared with the sizes of the tensors."""

import os
import sys
import unittest
import weakref

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import tidemark.torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../bench"))
import modules

WIDTH, BATCH = 64, 32
FLOAT = 4
ACTIVATION = BATCH * WIDTH * FLOAT


class Net(nn.Module):
    """``embed`` and ``head`` share their weight; ``blocks`` has no forward method of its own."""

    def __init__(self, checkpointed=False):
        super().__init__()
        self.embed = nn.Embedding(100, WIDTH)
        self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh()) for _ in range(2))
        self.head = nn.Linear(WIDTH, 100, bias=False)
        self.head.weight = self.embed.weight
        self.checkpointed = checkpointed

    def forward(self, tokens):
        hidden = self.embed(tokens)
        for block in self.blocks:
            hidden = checkpoint(block, hidden, use_reentrant=False) if self.checkpointed else block(hidden)
        return self.head(hidden)


def step_of(net, tokens, optimizer=None):
    def step():
        loss = nn.functional.cross_entropy(net(tokens), tokens)
        loss.backward()
        if optimizer is not None:
            optimizer.step()
            optimizer.zero_grad()
        return loss.item()

    return step


class ByModule(unittest.TestCase):
    def setUp(self):
        self.net, self.tokens = Net(), torch.randint(0, 100, (BATCH,))
        self.handlers = self.hooks()

    def tearDown(self):
        self.assertEqual(self.hooks(), self.handlers)

    @staticmethod
    def hooks():
        module = torch.nn.modules.module
        return len(module._global_forward_hooks), len(module._global_forward_pre_hooks)

    def rows(self, memory):
        return {row.name: row for row in memory.rows}

    def test_parameters_and_gradients_count_shared_weights_once(self):
        optimizer = torch.optim.SGD(self.net.parameters())
        memory = tidemark.torch.by_module(self.net, step_of(self.net, self.tokens, optimizer))
        self.assertIsInstance(memory.result, float)
        rows = self.rows(memory)
        weight, linear = 100 * WIDTH * FLOAT, (WIDTH * WIDTH + WIDTH) * FLOAT
        for name, size in (("", weight + 2 * linear), ("embed", weight), ("head", weight), ("blocks", 2 * linear)):
            self.assertEqual((rows[name].parameters.host, rows[name].gradients.host), (size, size), name)
        self.assertEqual(rows[""].parameters.device, 0)

    def test_saved_is_what_forward_made_and_backward_finds(self):
        rows = self.rows(tidemark.torch.by_module(self.net, step_of(self.net, self.tokens)))
        # tanh saves its own output; the output of the linear layer before it is freed at once.
        self.assertEqual(rows["blocks.0.0"].saved.host, 0)
        self.assertEqual(rows["blocks.0.1"].saved.host, ACTIVATION)
        self.assertEqual(rows["blocks.0"].saved.host, ACTIVATION)
        self.assertEqual(rows["blocks"].saved.host, 2 * ACTIVATION)
        self.assertEqual(rows["embed"].saved.host, ACTIVATION)
        inside, outside = rows[""].saved.host, rows["(outside modules)"].saved.host
        self.assertEqual(rows["(whole step)"].saved.host, inside + outside)

    def test_checkpoints_save_less_and_compute_again(self):
        plain = self.rows(tidemark.torch.by_module(self.net, step_of(self.net, self.tokens)))
        net = Net(checkpointed=True)
        less = self.rows(tidemark.torch.by_module(net, step_of(net, self.tokens)))
        self.assertLess(less[""].saved.host, plain[""].saved.host + 1)
        self.assertEqual(less["blocks.0.1"].saved.host, plain["blocks.0.1"].saved.host)  # the next block's input
        deep = nn.Sequential(*(nn.Tanh() for _ in range(8)))
        values = torch.zeros(1000, requires_grad=True)
        whole = self.rows(tidemark.torch.by_module(deep, lambda: deep(values).sum().backward()))
        few = self.rows(
            tidemark.torch.by_module(deep, lambda: checkpoint(deep, values, use_reentrant=False).sum().backward())
        )
        self.assertEqual(whole[""].saved.host, 8 * 4000)
        self.assertLess(few[""].saved.host, 2 * 4000)
        self.assertGreaterEqual(few[""].peak.host, 8 * 4000)

    def test_the_peak_of_a_module_is_that_of_its_forward_and_backward(self):
        class Wide(nn.Module):
            def forward(self, values):
                return (values.expand(1000, 1000) * 2.0).sum(dim=0)

        class Narrow(nn.Module):
            def forward(self, values):
                return values * 2.0

        net = nn.Sequential(Narrow(), Wide(), Narrow())
        values = torch.zeros(1000)
        rows = self.rows(tidemark.torch.by_module(net, net, values))
        self.assertEqual(rows["0"].saved, None)  # no backward pass
        self.assertGreaterEqual(rows["1"].peak.host, 1000 * 1000 * FLOAT)
        self.assertLess(rows["1"].peak.host, 1000 * 1000 * FLOAT + 100_000)
        self.assertLess(rows["0"].peak.host, 100_000)
        self.assertLess(rows["2"].peak.host, 100_000)
        self.assertEqual(rows["(whole step)"].peak, rows["1"].peak)

    def test_a_block_and_a_step_that_fails(self):
        with tidemark.torch.by_module(self.net) as memory:
            step_of(self.net, self.tokens)()
        self.assertGreater(self.rows(memory)[""].gradients.host, 0)
        with self.assertRaises(IndexError):
            tidemark.torch.by_module(self.net, self.net, torch.full((BATCH,), 1000))
        self.assertGreater(self.rows(tidemark.torch.by_module(self.net, step_of(self.net, self.tokens)))[""].saved.host, 0)

    def test_nothing_is_kept_and_results_are_the_same(self):
        torch.manual_seed(1)
        first, second = Net(), Net()
        second.load_state_dict(first.state_dict())
        plain = step_of(first, self.tokens)()
        memory = tidemark.torch.by_module(second, step_of(second, self.tokens))
        self.assertEqual(memory.result, plain)
        for one, other in zip(first.parameters(), second.parameters()):
            self.assertTrue(torch.equal(one.grad, other.grad))
        gone = weakref.ref(second)
        del memory, second, other
        import gc

        gc.collect()
        self.assertIsNone(gone())

    def test_the_peaks_of_models_are_those_of_torch_profiler(self):
        for name, make, shape in (
            ("transformer", lambda: modules.transformer(64, 2), (2, 16, 64)),
            ("transformer with long sequences", lambda: modules.transformer(64, 2), (2, 256, 64)),
            ("perceptron", lambda: modules.perceptron(64, 4), (32, 64)),
        ):
            with self.subTest(name):
                model, batch = make(), torch.randn(*shape)
                optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)

                def step():
                    model(batch).square().mean().backward()
                    optimizer.step()
                    optimizer.zero_grad()

                step()
                memory = tidemark.torch.by_module(model, step)
                parameters = sum(each.nbytes for each in model.parameters())
                self.assertEqual(memory.rows[-1].peak.host, parameters + modules.traced_peak_of(step))
                # The loss of 4 bytes, and its copy.
                self.assertAlmostEqual(memory.rows[-1].saved.host, modules.saved_of(model, batch), delta=8)

    def test_meta_and_frozen_parameters(self):
        net = nn.Sequential(nn.Linear(8, 8, device="meta"), nn.Linear(8, 8))
        net[1].requires_grad_(False)
        with tidemark.torch.by_module(net) as memory:
            net[1](torch.zeros(2, 8))
        rows = self.rows(memory)
        self.assertEqual((rows["0"].parameters.host, rows["0"].peak, rows["1"].gradients.host), (0, None, 0))

    def test_the_table(self):
        memory = tidemark.torch.by_module(self.net, step_of(self.net, self.tokens))
        self.assertRegex(repr(memory), r"module +type +parameters \(host\) +gradients \(host\) +saved \(host\) +peak")
        self.assertIn("    0              Sequential", repr(memory))
        self.assertNotIn("device", repr(memory))
        self.assertIn("<table", memory._repr_html_())

    def test_without_a_step_the_text_names_what_is_missing(self):
        memory = tidemark.torch.by_module(Net())
        self.assertIn("no step is measured yet: by_module(model, step)", str(memory))
        self.assertIn("no step is measured yet", memory._repr_html_())

    def test_wrong_arguments_are_named(self):
        for arguments, message in (((3,), "nn.Module, not int"), ((self.net, 3), "function as its step, not int")):
            with self.assertRaisesRegex(TypeError, message):
                tidemark.torch.by_module(*arguments)
        with self.assertRaisesRegex(TypeError, "the step before its arguments"):
            tidemark.torch.by_module(self.net, None, 3)


if __name__ == "__main__":
    unittest.main()
