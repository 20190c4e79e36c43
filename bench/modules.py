"""What ``tidemark.torch.by_module`` costs, and whether its figures are right: ``python modules.py [--device cuda] [--pairs 10]``.

A step with by_module runs alternately with a plain one, A B A B ...; each ratio is of one pair. The figures are
compared with torch's own: the sizes of the parameters, saved_tensors_hooks, and for the peak max_memory_allocated on a
device, or the parameters and the highest sum of the allocations in a trace of torch.profiler on the CPU.
Prints one JSON document.
"""

import argparse
import itertools
import json
import os
import tempfile
import time

import torch
from torch import nn

import tidemark.torch


def transformer(width, layers):
    layer = nn.TransformerEncoderLayer(width, 8, 4 * width, batch_first=True, dropout=0.0)
    return nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)


def perceptron(width, layers):
    return nn.Sequential(*[part for _ in range(layers) for part in (nn.Linear(width, width), nn.GELU())])


#: name, model, shape of a batch on the CPU and on a device
CASES = [
    ("perceptron, 64 wide", lambda: perceptron(64, 8), (32, 64), (32, 64)),
    ("perceptron, 1024 wide", lambda: perceptron(1024, 8), (64, 1024), (4096, 1024)),
    ("transformer, 256 wide", lambda: transformer(256, 4), (4, 64, 256), (32, 256, 256)),
    ("transformer, 1024 wide", lambda: transformer(1024, 4), (1, 64, 1024), (32, 512, 1024)),
]


def seconds_of(work, device):
    if device != "cpu":
        torch.cuda.synchronize()
    begin = time.perf_counter()
    result = work()
    if device != "cpu":
        torch.cuda.synchronize()
    return time.perf_counter() - begin, result


def traced_peak_of(step):
    """Highest bytes of what the CPU's allocator allocated and did not free since the step began, by torch.profiler."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profiler:
        step()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.json")
        profiler.export_chrome_trace(path)
        with open(path) as file:
            events = [event for event in json.load(file)["traceEvents"] if event.get("name") == "[memory]"]
    sizes = [event["args"]["Bytes"] for event in sorted(events, key=lambda event: event["ts"])]
    return max(itertools.accumulate(sizes))


def peak_of(step):
    """Bytes that torch's allocator held at most during a plain step on a device."""
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    step()
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated()


def saved_of(model, batch):
    """Bytes of the storages that autograd saves, without parameters and the batch."""
    known = {tensor.untyped_storage()._cdata for tensor in [*model.parameters(), batch]}
    storages = {}

    def keep(tensor):
        storage = tensor.untyped_storage()
        if storage._cdata not in known:
            storages[storage._cdata] = storage.nbytes()
        return tensor.detach()  # an output that its own operation saves would keep the whole graph in a cycle

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        model(batch).square().mean()
    return sum(storages.values())


def measure(name, make, shape, device, pairs):
    torch.manual_seed(0)
    model = make().to(device)
    batch = torch.randn(*shape, device=device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)

    def step():
        model(batch).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()

    for _ in range(3):
        step()
        memory = tidemark.torch.by_module(model, step)
    ratios, plain_ms = [], []
    for _ in range(pairs):
        plain, _ = seconds_of(step, device)
        measured, memory = seconds_of(lambda: tidemark.torch.by_module(model, step), device)
        ratios.append(measured / plain)
        plain_ms.append(plain * 1000)
    whole = memory.rows[-1]
    place = 0 if device == "cpu" else 1
    parameters = sum(each.numel() * each.element_size() for each in model.parameters())
    found = {
        "case": name,
        "device": device if device == "cpu" else torch.cuda.get_device_name(),
        "plainMs": sorted(plain_ms)[len(plain_ms) // 2],
        "ratios": ratios,
        "parametersBytes": [whole.parameters[place], parameters],
        "gradientsBytes": [whole.gradients[place], parameters],
        "savedBytes": [whole.saved[place], saved_of(model, batch)],
        "peakBytes": [whole.peak[place], peak_of(step) if device != "cpu" else parameters + traced_peak_of(step)],
    }
    return found, repr(memory)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--tables", help="a file for the tables")
    options = parser.parse_args()
    torch.set_num_threads(1)
    results = []
    for name, make, on_cpu, on_device in CASES:
        found, table = measure(name, make, on_cpu if options.device == "cpu" else on_device, options.device, options.pairs)
        results.append(found)
        if options.tables:
            with open(options.tables, "a") as file:
                print(name, table, sep="\n", end="\n\n", file=file)
    print(json.dumps({"torch": torch.__version__, "cases": results}))


if __name__ == "__main__":
    main()
