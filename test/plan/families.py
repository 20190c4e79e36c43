"""Training steps of small models, and the bytes of their tensors by part.

    python families.py BATCH SEQUENCE CONFIG.json:sdpa CONFIG.json:eager ...

Each family is written in plain torch as its library computes it: the same operations in the same order, because the
operations determine what autograd saves. Prints one JSON object: bytes of weights, gradients, optimizer states, and of
the storages that autograd saves, without parameters and inputs.
"""
import json
import sys

import torch
from torch import nn
from torch.nn import functional as F

from family_parts import ACTIVATIONS, RMSNorm, rotate, tables, mix, Attention, LatentAttention, GatedMLP, Experts


class DecoderLayer(nn.Module):
    def __init__(self, c, kind, index):
        super().__init__()
        hidden, family = c["hidden_size"], c["model_type"]
        self.attention = (LatentAttention if "kv_lora_rank" in c else Attention)(c, kind)
        dense = index < c.get("first_k_dense_replace", 0) or not ("num_local_experts" in c or "n_routed_experts" in c)
        activation = c.get("hidden_activation") or c.get("hidden_act", "silu")
        self.mlp = GatedMLP(hidden, c["intermediate_size"], activation) if dense else Experts(c)
        self.sandwich = family == "gemma2"
        self.norms = nn.ModuleList(RMSNorm(hidden) for _ in range(4 if self.sandwich else 2))

    def forward(self, x):
        if self.sandwich:
            first, second, third, fourth = self.norms
            x = x + second(self.attention(first(x)))
            return x + fourth(self.mlp(third(x)))
        first, second = self.norms
        x = x + self.attention(first(x))
        return x + self.mlp(second(x))


class Decoder(nn.Module):
    def __init__(self, c, kind):
        super().__init__()
        self.embed = nn.Embedding(c["vocab_size"], c["hidden_size"])
        self.layers = nn.ModuleList(DecoderLayer(c, kind, index) for index in range(c["num_hidden_layers"]))
        self.norm = RMSNorm(c["hidden_size"])
        self.head = nn.Linear(c["hidden_size"], c["vocab_size"], bias=False)
        if c.get("tie_word_embeddings"):
            self.head.weight = self.embed.weight
        self.cap = c.get("final_logit_softcapping")

    def forward(self, ids):
        x = self.embed(ids)
        for layer in self.layers:
            x = layer(x)
        logits = self.head(self.norm(x))
        if self.cap is not None:
            logits = torch.tanh(logits / self.cap) * self.cap
        return language_loss(logits, ids)


def language_loss(logits, ids):
    return F.cross_entropy(logits.float().view(-1, logits.shape[-1]), ids.reshape(-1))


class PlainLayer(nn.Module):
    """A layer with biases: GPT-2 and NeoX (one matrix for q, k, v), BERT, ViT, Whisper (three)."""

    def __init__(self, hidden, heads, width, activation, kind, *, order="before", causal=False, fused=False, cross=False, turned=0, padded=False):
        super().__init__()
        self.heads, self.kind, self.order, self.causal, self.turned = heads, kind, order, causal, turned
        self.fused, self.padded, self.contiguous = fused, padded, False
        self.qkv = nn.Linear(hidden, 3 * hidden) if fused else nn.ModuleList(nn.Linear(hidden, hidden) for _ in range(3))
        self.out = nn.Linear(hidden, hidden)
        self.up, self.down = nn.Linear(hidden, width), nn.Linear(width, hidden)
        self.activation = ACTIVATIONS[activation]
        self.norms = nn.ModuleList(nn.LayerNorm(hidden) for _ in range(3 if cross else 2))
        if cross:
            self.cross_qkv = nn.ModuleList(nn.Linear(hidden, hidden) for _ in range(3))
            self.cross_out = nn.Linear(hidden, hidden)

    def split(self, x):
        return x.view(*x.shape[:2], self.heads, -1).transpose(1, 2)

    def laid_out(self, query):
        return query.contiguous() if self.contiguous else query

    def attend(self, x):
        if self.fused:
            query, key, value = self.qkv(x).chunk(3, dim=-1)
        else:
            query, key, value = (matrix(x) for matrix in self.qkv)
        query, key, value = self.split(query), self.split(key), self.split(value)
        if self.turned:
            cos, sin = tables(x.shape[1], self.turned)
            part = self.turned
            query = torch.cat((rotate(query[..., :part], cos, sin), query[..., part:]), dim=-1)
            key = torch.cat((rotate(key[..., :part], cos, sin), key[..., part:]), dim=-1)
        return self.out(mix(self.laid_out(query), key, value, self.kind, self.causal, padded=self.padded).reshape(x.shape))

    def attend_other(self, x, other):
        query, key, value = (matrix(from_) for matrix, from_ in zip(self.cross_qkv, (x, other, other)))
        out = mix(self.laid_out(self.split(query)), self.split(key), self.split(value), self.kind, False)
        return self.cross_out(out.reshape(x.shape))

    def mlp(self, x):
        return self.down(self.activation(self.up(x)))

    def forward(self, x, other=None):
        if self.order == "parallel":
            return self.mlp(self.norms[1](x)) + self.attend(self.norms[0](x)) + x
        if self.order == "after":
            x = self.norms[0](self.attend(x) + x)
            return self.norms[1](self.mlp(x) + x)
        x = x + self.attend(self.norms[0](x))
        if other is not None:
            x = x + self.attend_other(self.norms[2](x), other)
        return x + self.mlp(self.norms[1](x))


class Gpt(nn.Module):
    def __init__(self, c, kind):
        super().__init__()
        hidden = c.get("n_embd") or c["hidden_size"]
        heads = c.get("n_head") or c["num_attention_heads"]
        layers = c.get("n_layer") or c["num_hidden_layers"]
        width = c.get("intermediate_size", 4 * hidden)
        neox = c["model_type"] == "gpt_neox"
        self.embed = nn.Embedding(c["vocab_size"], hidden)
        self.positions = None if neox else nn.Embedding(c["n_positions"], hidden)
        turned = int(hidden // heads * c["rotary_pct"]) if neox else 0
        activation = c.get("hidden_act", "gelu") if neox else c["activation_function"]
        self.layers = nn.ModuleList(
            PlainLayer(hidden, heads, width, activation, kind, order="parallel" if neox else "before", causal=True, fused=True, turned=turned, padded=True)
            for _ in range(layers)
        )
        self.norm, self.head = nn.LayerNorm(hidden), nn.Linear(hidden, c["vocab_size"], bias=False)
        if not neox:
            self.head.weight = self.embed.weight

    def forward(self, ids):
        x = self.embed(ids)
        if self.positions is not None:
            x = x + self.positions(torch.arange(ids.shape[1]))
        for layer in self.layers:
            x = layer(x)
        return language_loss(self.head(self.norm(x)), ids)


class Bert(nn.Module):
    def __init__(self, c, kind):
        super().__init__()
        hidden = c["hidden_size"]
        self.tables = nn.ModuleList(
            nn.Embedding(rows, hidden) for rows in (c["vocab_size"], c["max_position_embeddings"], c["type_vocab_size"])
        )
        self.norm = nn.LayerNorm(hidden)
        self.layers = nn.ModuleList(
            PlainLayer(hidden, c["num_attention_heads"], c["intermediate_size"], c["hidden_act"], kind, order="after", padded=True)
            for _ in range(c["num_hidden_layers"])
        )
        self.dense, self.dense_norm = nn.Linear(hidden, hidden), nn.LayerNorm(hidden)
        self.head = nn.Linear(hidden, c["vocab_size"])
        self.head.weight = self.tables[0].weight

    def forward(self, ids):
        words, positions, types = self.tables
        place = torch.arange(ids.shape[1]).expand_as(ids)
        x = self.norm(words(ids) + positions(place) + types(torch.zeros_like(ids)))
        for layer in self.layers:
            x = layer(x)
        return language_loss(self.head(self.dense_norm(F.gelu(self.dense(x)))), ids)


class T5Layer(nn.Module):
    def __init__(self, c, cross):
        super().__init__()
        hidden, inner = c["d_model"], c["num_heads"] * c["d_kv"]
        self.heads, self.cross = c["num_heads"], cross
        kinds = 2 if cross else 1
        self.q, self.k, self.v = (
            nn.ModuleList(nn.Linear(hidden, inner, bias=False) for _ in range(kinds)) for _ in range(3)
        )
        self.o = nn.ModuleList(nn.Linear(inner, hidden, bias=False) for _ in range(kinds))
        self.norms = nn.ModuleList(RMSNorm(hidden) for _ in range(kinds + 1))
        self.mlp = GatedMLP(hidden, c["d_ff"], "gelu_new")

    def attend(self, index, x, other, bias, causal):
        split = lambda y: y.view(*y.shape[:2], self.heads, -1).transpose(1, 2)
        query, key, value = split(self.q[index](x)), split(self.k[index](other)), split(self.v[index](other))
        out = mix(query, key, value, "eager", causal, None, bias)
        return self.o[index](out.reshape(*x.shape[:2], -1))

    def forward(self, x, bias, other=None):
        normed = self.norms[0](x)
        x = x + self.attend(0, normed, normed, bias, self.cross)
        if self.cross:
            x = x + self.attend(1, self.norms[1](x), other, torch.zeros(1), False)
        return x + self.mlp(self.norms[-1](x))


class T5(nn.Module):
    def __init__(self, c, kind):
        super().__init__()
        self.embed = nn.Embedding(c["vocab_size"], c["d_model"])
        self.biases = nn.ModuleList(nn.Embedding(32, c["num_heads"]) for _ in range(2))
        self.encoder = nn.ModuleList(T5Layer(c, False) for _ in range(c["num_layers"]))
        self.decoder = nn.ModuleList(T5Layer(c, True) for _ in range(c["num_layers"]))
        self.norms = nn.ModuleList(RMSNorm(c["d_model"]) for _ in range(2))
        self.head = nn.Linear(c["d_model"], c["vocab_size"], bias=False)

    def bias(self, table, length):
        places = (torch.arange(length)[:, None] - torch.arange(length)[None]).clamp(0, 31)
        return table(places).permute(2, 0, 1)[None]

    def forward(self, ids):
        length = ids.shape[1]
        x = self.embed(ids)
        bias = self.bias(self.biases[0], length)
        for layer in self.encoder:
            x = layer(x, bias)
        other = self.norms[0](x)
        x = self.embed(ids)
        bias = self.bias(self.biases[1], length)
        for layer in self.decoder:
            x = layer(x, bias, other)
        return language_loss(self.head(self.norms[1](x)), ids)


class Vit(nn.Module):
    def __init__(self, c, kind):
        super().__init__()
        hidden, patch = c["hidden_size"], c["patch_size"]
        count = (c["image_size"] // patch) ** 2
        self.patch = nn.Conv2d(3, hidden, patch, patch)
        self.token = nn.Parameter(torch.zeros(1, 1, hidden))
        self.places = nn.Parameter(torch.zeros(1, count + 1, hidden))
        self.layers = nn.ModuleList(
            PlainLayer(hidden, c["num_attention_heads"], c["intermediate_size"], c["hidden_act"], kind)
            for _ in range(c["num_hidden_layers"])
        )
        self.norm, self.head = nn.LayerNorm(hidden), nn.Linear(hidden, c["num_labels"])

    def forward(self, images):
        x = self.patch(images).flatten(2).transpose(1, 2)
        x = torch.cat((self.token.expand(x.shape[0], -1, -1), x), dim=1) + self.places
        for layer in self.layers:
            x = layer(x)
        return F.cross_entropy(self.head(self.norm(x)[:, 0]), torch.zeros(x.shape[0], dtype=torch.long))


class Whisper(nn.Module):
    def __init__(self, c, kind):
        super().__init__()
        hidden = c["d_model"]
        self.frames = c["max_source_positions"]
        self.first = nn.Conv1d(c["num_mel_bins"], hidden, 3, padding=1)
        self.second = nn.Conv1d(hidden, hidden, 3, stride=2, padding=1)
        self.source = nn.Embedding(self.frames, hidden)
        layer = lambda side, cross: PlainLayer(
            hidden, c[f"{side}_attention_heads"], c[f"{side}_ffn_dim"], "gelu", kind, causal=cross, cross=cross
        )
        self.encoder = nn.ModuleList(layer("encoder", False) for _ in range(c["encoder_layers"]))
        self.decoder = nn.ModuleList(layer("decoder", True) for _ in range(c["decoder_layers"]))
        for one in [*self.encoder, *self.decoder]:
            one.contiguous = True
        self.norms = nn.ModuleList(nn.LayerNorm(hidden) for _ in range(2))
        self.embed, self.places = nn.Embedding(c["vocab_size"], hidden), nn.Embedding(c["max_target_positions"], hidden)
        self.head = nn.Linear(hidden, c["vocab_size"], bias=False)
        self.head.weight = self.embed.weight

    def forward(self, ids):
        frames = torch.randn(ids.shape[0], self.first.in_channels, 2 * self.frames)
        x = F.gelu(self.second(F.gelu(self.first(frames)))).transpose(1, 2)
        x = x + self.source.weight
        for layer in self.encoder:
            x = layer(x)
        other = self.norms[0](x)
        x = self.embed(ids) + self.places(torch.arange(ids.shape[1]))
        for layer in self.decoder:
            x = layer(x, other)
        return language_loss(self.head(self.norms[1](x)), ids)


class Bottleneck(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        middle = outputs // 4
        norm = nn.BatchNorm2d
        self.steps = nn.ModuleList(
            [nn.Conv2d(inputs, middle, 1, bias=False), norm(middle), nn.Conv2d(middle, middle, 3, stride, 1, bias=False),
             norm(middle), nn.Conv2d(middle, outputs, 1, bias=False), norm(outputs)]
        )
        self.short = None
        if stride != 1 or inputs != outputs:
            self.short = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), norm(outputs))

    def forward(self, x):
        a, an, b, bn, c, cn = self.steps
        inner = F.relu(an(a(x)), inplace=True)
        inner = F.relu(bn(b(inner)), inplace=True)
        return F.relu(cn(c(inner)) + (x if self.short is None else self.short(x)), inplace=True)


class Resnet(nn.Module):
    def __init__(self, c, kind):
        super().__init__()
        channels = c["embedding_size"]
        self.stem, self.norm = nn.Conv2d(3, channels, 7, 2, 3, bias=False), nn.BatchNorm2d(channels)
        blocks, before = [], channels
        for stage, (size, depth) in enumerate(zip(c["hidden_sizes"], c["depths"])):
            for index in range(depth):
                blocks.append(Bottleneck(before, size, 2 if index == 0 and stage > 0 else 1))
                before = size
        self.blocks, self.head = nn.ModuleList(blocks), nn.Linear(before, c["num_labels"])

    def forward(self, images):
        x = F.max_pool2d(F.relu(self.norm(self.stem(images)), inplace=True), 3, 2, 1)
        for block in self.blocks:
            x = block(x)
        return F.cross_entropy(self.head(x.mean((2, 3))), torch.zeros(x.shape[0], dtype=torch.long))


FAMILIES = {"gpt2": Gpt, "gpt_neox": Gpt, "bert": Bert, "t5": T5, "vit": Vit, "whisper": Whisper, "resnet": Resnet}


def nbytes(tensors):
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def measured(path, kind, batch, sequence):
    with open(path) as file:
        c = json.load(file)
    torch.manual_seed(0)
    model = FAMILIES.get(c["model_type"], Decoder)(c, kind)
    if c["model_type"] in ("vit", "resnet"):
        source = torch.randn(batch, 3, c.get("image_size", 224), c.get("image_size", 224))
    else:
        source = torch.randint(0, c["vocab_size"], (batch, sequence))
    own = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}
    saved, kept = {}, []

    def pack(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            saved[storage.data_ptr()] = storage.nbytes()
            kept.append(tensor)  # keeps the tensors alive, so that no address is used twice
        return tensor

    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        loss = model(source)
    total = sum(saved.values())
    loss.backward()
    optimizer.step()
    states = [value for state in optimizer.state.values() for value in state.values()]
    return {
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "weights": nbytes(model.parameters()),
        "gradients": nbytes(parameter.grad for parameter in model.parameters()),
        "optimizer": nbytes(states),
        "saved": total,
    }


def main():
    batch, sequence = int(sys.argv[1]), int(sys.argv[2])
    found = {}
    for case in sys.argv[3:]:
        path, kind = case.rsplit(":", 1)
        found[case] = measured(path, kind, batch, sequence)
    print(json.dumps(found))


main()
