"""Activations, norms, attention, MLPs and experts of the models in families.py, in plain torch."""
import math

import torch
from torch import nn
from torch.nn import functional as F


def silu(x):
    return F.silu(x)


def gelu_new(x):
    return 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))))


def quick_gelu(x):
    return x * torch.sigmoid(1.702 * x)


ACTIVATIONS = {
    "silu": silu,
    "gelu": F.gelu,
    "gelu_new": gelu_new,
    "gelu_pytorch_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "quick_gelu": quick_gelu,
    "relu": F.relu,
}


class RMSNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        wide = x.float()
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)
        return self.weight * wide.to(x.dtype)


def rotate(x, cos, sin):
    half = x.shape[-1] // 2
    turned = torch.cat((-x[..., half:], x[..., :half]), dim=-1)
    return x * cos + turned * sin


def tables(length, size):
    angles = torch.outer(torch.arange(length).float(), 1.0 / 10000 ** (torch.arange(0, size, 2) / size))
    angles = torch.cat((angles, angles), dim=-1)
    return angles.cos(), angles.sin()


def repeat(x, groups):
    if groups == 1:
        return x
    batch, heads, length, size = x.shape
    return x[:, :, None].expand(batch, heads, groups, length, size).reshape(batch, heads * groups, length, size)


def mix(query, key, value, kind, causal, cap=None, bias=None, padded=False):
    if kind == "sdpa" and bias is None:
        mask = None
        if padded:
            # Each call converts the mask of a padded batch to scores of its own.
            mask = torch.zeros(query.shape[0], 1, query.shape[2], key.shape[2])
            mask = mask + torch.full_like(mask, -1e9).triu(1) if causal else mask + 0
        out = F.scaled_dot_product_attention(query, key, value, attn_mask=mask, is_causal=causal and not padded)
        return out.transpose(1, 2)
    scores = torch.matmul(query, key.transpose(2, 3)) * (query.shape[-1] ** -0.5)
    if cap is not None:
        scores = torch.tanh(scores / cap) * cap
    mask = torch.zeros(query.shape[2], key.shape[2])
    if causal:
        mask = torch.full_like(mask, -1e9).triu(1)
    scores = scores + (mask if bias is None else bias + mask)
    weights = F.softmax(scores, dim=-1, dtype=torch.float32).to(query.dtype)
    return torch.matmul(weights, value).transpose(1, 2).contiguous()


class Attention(nn.Module):
    def __init__(self, c, kind):
        super().__init__()
        self.kind, self.cap = kind, c.get("attn_logit_softcapping")
        self.heads = c["num_attention_heads"]
        self.kv = c.get("num_key_value_heads", self.heads)
        hidden = c["hidden_size"]
        self.size = c.get("head_dim", hidden // self.heads)
        bias = c["model_type"] == "qwen2"
        self.q = nn.Linear(hidden, self.heads * self.size, bias=bias)
        self.k = nn.Linear(hidden, self.kv * self.size, bias=bias)
        self.v = nn.Linear(hidden, self.kv * self.size, bias=bias)
        self.o = nn.Linear(self.heads * self.size, hidden, bias=False)
        if c["model_type"] == "qwen3":
            self.q_norm, self.k_norm = RMSNorm(self.size), RMSNorm(self.size)

    def forward(self, x):
        batch, length, _ = x.shape
        shape = (batch, length, -1, self.size)
        query, key = self.q(x).view(shape), self.k(x).view(shape)
        value = self.v(x).view(shape).transpose(1, 2)
        if hasattr(self, "q_norm"):
            query, key = self.q_norm(query), self.k_norm(key)
        cos, sin = tables(length, self.size)
        query, key = rotate(query.transpose(1, 2), cos, sin), rotate(key.transpose(1, 2), cos, sin)
        groups = self.heads // self.kv
        out = mix(query, repeat(key, groups), repeat(value, groups), self.kind, True, self.cap, padded=True)
        return self.o(out.reshape(batch, length, -1))


class LatentAttention(nn.Module):
    def __init__(self, c, kind):
        super().__init__()
        self.c, self.kind = c, kind
        hidden, heads = c["hidden_size"], c["num_attention_heads"]
        self.plain, self.turned, self.value = c["qk_nope_head_dim"], c["qk_rope_head_dim"], c["v_head_dim"]
        self.q_a = nn.Linear(hidden, c["q_lora_rank"], bias=False)
        self.q_norm = RMSNorm(c["q_lora_rank"])
        self.q_b = nn.Linear(c["q_lora_rank"], heads * (self.plain + self.turned), bias=False)
        self.kv_a = nn.Linear(hidden, c["kv_lora_rank"] + self.turned, bias=False)
        self.kv_norm = RMSNorm(c["kv_lora_rank"])
        self.kv_b = nn.Linear(c["kv_lora_rank"], heads * (self.plain + self.value), bias=False)
        self.o = nn.Linear(heads * self.value, hidden, bias=False)

    def forward(self, x):
        batch, length, _ = x.shape
        heads = self.c["num_attention_heads"]
        query = self.q_b(self.q_norm(self.q_a(x))).view(batch, length, heads, -1).transpose(1, 2)
        q_plain, q_turned = query.split([self.plain, self.turned], dim=-1)
        low, k_turned = self.kv_a(x).split([self.c["kv_lora_rank"], self.turned], dim=-1)
        both = self.kv_b(self.kv_norm(low)).view(batch, length, heads, -1).transpose(1, 2)
        k_plain, value = both.split([self.plain, self.value], dim=-1)
        cos, sin = tables(length, self.turned)
        q_turned = rotate(q_turned, cos, sin)
        k_turned = rotate(k_turned.view(batch, 1, length, self.turned), cos, sin)
        query = torch.cat((q_plain, q_turned), dim=-1)
        key = torch.cat((k_plain, k_turned.expand(-1, heads, -1, -1)), dim=-1)
        out = mix(query, key, value, self.kind, True)
        return self.o(out.reshape(batch, length, -1))


class GatedMLP(nn.Module):
    def __init__(self, hidden, width, activation):
        super().__init__()
        self.gate, self.up = nn.Linear(hidden, width, bias=False), nn.Linear(hidden, width, bias=False)
        self.down, self.activation = nn.Linear(width, hidden, bias=False), ACTIVATIONS[activation]

    def forward(self, x):
        return self.down(self.activation(self.gate(x)) * self.up(x))


class Grouped(torch.autograd.Function):
    """Rows of one expert after another, each times its matrix: what torch's grouped_mm saves, its inputs alone."""

    @staticmethod
    def forward(ctx, x, counts, *matrices):
        ctx.counts = counts
        ctx.save_for_backward(x, *matrices)
        return torch.cat([rows @ matrix.T for rows, matrix in zip(x.split(counts), matrices)])

    @staticmethod
    def backward(ctx, gradient):
        x, *matrices = ctx.saved_tensors
        pieces, rows = gradient.split(ctx.counts), x.split(ctx.counts)
        made = torch.cat([piece @ matrix for piece, matrix in zip(pieces, matrices)])
        return made, None, *(piece.T @ row for piece, row in zip(pieces, rows))


class Expert(nn.Module):
    def __init__(self, hidden, width):
        super().__init__()
        self.gate_up = nn.Parameter(torch.randn(2 * width, hidden) * 0.02)
        self.down = nn.Parameter(torch.randn(hidden, width) * 0.02)


class Experts(nn.Module):
    def __init__(self, c):
        super().__init__()
        hidden = c["hidden_size"]
        count = c.get("num_local_experts") or c["n_routed_experts"]
        width = c.get("moe_intermediate_size", c["intermediate_size"])
        self.per_token = c["num_experts_per_tok"]
        self.router = nn.Linear(hidden, count, bias=False)
        self.experts = nn.ModuleList(Expert(hidden, width) for _ in range(count))
        shared = c.get("n_shared_experts", 0)
        self.shared = GatedMLP(hidden, shared * width, "silu") if shared else None

    def forward(self, x):
        flat = x.reshape(-1, x.shape[-1])
        probabilities = F.softmax(self.router(flat), dim=-1, dtype=torch.float32)
        weights, chosen = torch.topk(probabilities, self.per_token, dim=-1)
        # Sorted by expert, as grouped products read them; rows of absent experts would be filled with zeros.
        order = torch.argsort(chosen.flatten())
        rows = order // self.per_token
        absent = torch.zeros(len(rows), 1, dtype=torch.bool)
        counts = torch.bincount(chosen.flatten(), minlength=len(self.experts)).tolist()
        gathered = flat[rows]
        both = Grouped.apply(gathered, counts, *(expert.gate_up for expert in self.experts)).masked_fill(absent, 0)
        gate, up = both.chunk(2, dim=-1)
        made = Grouped.apply(F.silu(gate) * up, counts, *(expert.down for expert in self.experts))
        weighted = (made * weights.flatten()[order][:, None]).masked_fill(absent, 0)
        out = weighted[torch.argsort(order)].view(*flat.shape[:1], self.per_token, -1).sum(dim=1).reshape(x.shape)
        return out if self.shared is None else out + self.shared(x)
