"""Bytes that one compiled layer of Llama keeps for its backward pass, as torchtune writes it.

    python compiled.py CONFIG.json BATCH SEQUENCE

The layer is compiled with the min-cut partitioner of torch (`aot_eager_decomp_partition`), once with all weights trained
and once with adapters of rank 8 on each matrix, in bf16. Prints one JSON object: `full` and `lora`, in bytes.
"""
import json
import sys

import torch
from torch import nn
from torch.nn import functional as F

RANK = 8


class Linear(nn.Module):
    """y = x W, with an adapter beside a frozen matrix."""

    def __init__(self, inputs, outputs, adapted):
        super().__init__()
        self.matrix = nn.Linear(inputs, outputs, bias=False)
        self.adapted = adapted
        if adapted:
            self.matrix.weight.requires_grad = False
            self.low = nn.Linear(inputs, RANK, bias=False)
            self.high = nn.Linear(RANK, outputs, bias=False)

    def forward(self, x):
        made = self.matrix(x)
        return made + 2.0 * self.high(self.low(x)) if self.adapted else made


class Norm(nn.Module):
    def __init__(self, width, trained):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(width), requires_grad=trained)

    def forward(self, x):
        wide = x.float()
        return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-5)).type_as(x) * self.scale


def rotate(x, table):
    pairs = x.float().reshape(*x.shape[:-1], -1, 2)
    cos, sin = table.view(1, x.shape[1], 1, -1, 2).unbind(-1)
    turned = (pairs[..., 0] * cos - pairs[..., 1] * sin, pairs[..., 1] * cos + pairs[..., 0] * sin)
    return torch.stack(turned, -1).flatten(3).type_as(x)


class Layer(nn.Module):
    def __init__(self, c, adapted):
        super().__init__()
        hidden, width = c["hidden_size"], c["intermediate_size"]
        self.heads, self.groups = c["num_attention_heads"], c["num_key_value_heads"]
        self.size = hidden // self.heads
        narrow = self.groups * self.size
        self.first, self.second = Norm(hidden, not adapted), Norm(hidden, not adapted)
        self.query, self.out = Linear(hidden, hidden, adapted), Linear(hidden, hidden, adapted)
        self.key, self.value = Linear(hidden, narrow, adapted), Linear(hidden, narrow, adapted)
        self.gate, self.up = Linear(hidden, width, adapted), Linear(hidden, width, adapted)
        self.down = Linear(width, hidden, adapted)

    def repeated(self, x):
        batch, heads, length, size = x.shape
        return x.unsqueeze(2).expand(batch, heads, self.heads // heads, length, size).flatten(1, 2)

    def attend(self, x, table):
        batch, length, _ = x.shape
        query = rotate(self.query(x).view(batch, length, self.heads, self.size), table).transpose(1, 2)
        key = rotate(self.key(x).view(batch, length, self.groups, self.size), table).transpose(1, 2)
        value = self.value(x).view(batch, length, self.groups, self.size).transpose(1, 2)
        mixed = F.scaled_dot_product_attention(query, self.repeated(key), self.repeated(value), is_causal=True)
        return self.out(mixed.transpose(1, 2).reshape(batch, length, -1))

    def forward(self, x, table):
        x = x + self.attend(self.first(x), table)
        normed = self.second(x)
        return x + self.down(F.silu(self.gate(normed)) * self.up(normed))


def kept(c, batch, sequence, adapted):
    torch._dynamo.reset()
    layer = Layer(c, adapted).to(torch.bfloat16)
    compiled = torch.compile(layer, backend="aot_eager_decomp_partition")
    x = torch.randn(batch, sequence, c["hidden_size"], dtype=torch.bfloat16, requires_grad=True)
    table = torch.randn(sequence, layer.size)
    own = {tensor.untyped_storage().data_ptr() for tensor in [*layer.parameters(), table]}
    saved, alive = {}, []

    def pack(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            saved[storage.data_ptr()] = storage.nbytes()
            alive.append(tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        compiled(x, table)
    return sum(saved.values())


def main():
    with open(sys.argv[1]) as file:
        c = json.load(file)
    batch, sequence = int(sys.argv[2]), int(sys.argv[3])
    print(json.dumps({"full": kept(c, batch, sequence, False), "lora": kept(c, batch, sequence, True)}))


main()
