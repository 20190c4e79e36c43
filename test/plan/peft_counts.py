"""Writes test/data/plan/peft.json: what PEFT counts on small bf16 models, for each setting of an adapter that matters.

    python3 test/plan/peft_counts.py test/data/plan/peft.json       # needs torch, transformers and peft

Of each case: the adapter's configuration, trainable parameters, their bytes, and the bytes of all parameters.
"""

import json
import sys

import peft
import torch
import transformers

SIZES = dict(vocab_size=640, hidden_size=64, intermediate_size=160, num_attention_heads=4)
LLAMA = dict(SIZES, num_hidden_layers=3, num_key_value_heads=2)
MODELS = {
    "llama": lambda: transformers.LlamaForCausalLM(
        transformers.LlamaConfig(**LLAMA, tie_word_embeddings=False)
    ),
    "llama_tied": lambda: transformers.LlamaForCausalLM(
        transformers.LlamaConfig(**LLAMA, tie_word_embeddings=True)
    ),
    "qwen3_moe": lambda: transformers.Qwen3MoeForCausalLM(
        transformers.Qwen3MoeConfig(
            **SIZES,
            num_hidden_layers=2,
            num_key_value_heads=2,
            moe_intermediate_size=48,
            num_experts=4,
            num_experts_per_tok=2,
            head_dim=16,
            tie_word_embeddings=False,
            decoder_sparse_step=1,
            mlp_only_layers=[],
        )
    ),
    "bert": lambda: transformers.BertForSequenceClassification(
        transformers.BertConfig(**SIZES, num_hidden_layers=2)
    ),
}
QV = ["q_proj", "v_proj"]
CASES = {
    "plain": ("llama", dict(target_modules=QV)),
    "rslora": ("llama", dict(target_modules=QV, use_rslora=True)),
    "save": ("llama", dict(target_modules=QV, modules_to_save=["lm_head", "embed_tokens"])),
    "save_tied": (
        "llama_tied",
        dict(target_modules=QV, modules_to_save=["lm_head", "embed_tokens"]),
    ),
    "save_tied_head": ("llama_tied", dict(target_modules=["q_proj"], modules_to_save=["lm_head"])),
    "save_norms": (
        "llama",
        dict(target_modules=["q_proj"], modules_to_save=["input_layernorm", "norm"]),
    ),
    "save_first_norms": (
        "llama",
        dict(target_modules=["q_proj"], modules_to_save=["input_layernorm"]),
    ),
    "save_moe_head": ("qwen3_moe", dict(target_modules=["q_proj"], modules_to_save=["lm_head"])),
    "dora": ("llama", dict(target_modules=[*QV, "down_proj"], use_dora=True)),
    "ranks": (
        "llama",
        dict(
            target_modules=[*QV, "up_proj"],
            rank_pattern={
                "v_proj": 2,
                "model.layers.1.self_attn.q_proj": 16,
                "^model.layers.2.mlp.up_proj": 4,
            },
            alpha_pattern={"q_proj": 64},
        ),
    ),
    "layers": ("llama", dict(target_modules=QV, layers_to_transform=[0, 2])),
    "one_layer": ("llama", dict(target_modules=QV, layers_to_transform=1)),
    "exclude": (
        "llama",
        dict(target_modules="all-linear", exclude_modules=["down_proj", "k_proj"]),
    ),
    "tokens": ("llama", dict(target_modules=["q_proj"], trainable_token_indices=[1, 2, 3, 5])),
    "embedding": ("llama", dict(target_modules=["embed_tokens", "q_proj"])),
    "lora_bias": ("llama", dict(target_modules=["q_proj"], lora_bias=True)),
    "parameters": (
        "qwen3_moe",
        dict(
            r=4,
            target_modules=["q_proj"],
            target_parameters=["mlp.experts.gate_up_proj", "mlp.experts.down_proj"],
        ),
    ),
    "seq_cls": ("bert", dict(target_modules=["query", "value"], task_type="SEQ_CLS")),
    "bias_all": ("bert", dict(target_modules=["query", "value"], bias="all")),
    "bias_lora": ("bert", dict(target_modules=["query", "value"], bias="lora_only")),
}
SETTINGS = """peft_type task_type r lora_alpha target_modules modules_to_save use_dora use_rslora rank_pattern
alpha_pattern layers_to_transform layers_pattern exclude_modules target_parameters trainable_token_indices lora_bias
bias lora_dropout""".split()


def counted(model, settings):
    """The adapter's configuration as PEFT saves it, and what it counts."""
    adapted = peft.get_peft_model(model, peft.LoraConfig(**{"r": 8, **settings}))
    bytes_of = lambda each: each.numel() * each.element_size()
    trained = [each for each in adapted.parameters() if each.requires_grad]
    apart = {each.data_ptr(): each for each in adapted.parameters()}
    saved = adapted.peft_config["default"].to_dict()
    plain = {name: sorted(v) if isinstance(v, set) else v for name, v in saved.items()}
    return {
        "adapter": {name: plain[name] for name in SETTINGS if plain.get(name) is not None},
        "trainable": sum(each.numel() for each in trained),
        "trainableBytes": sum(map(bytes_of, trained)),
        "allBytes": sum(map(bytes_of, apart.values())),
    }


def main(path):
    torch.manual_seed(0)
    models, cases = {}, {}
    for name, (kind, settings) in CASES.items():
        model = MODELS[kind]().to(torch.bfloat16)
        values = json.loads(model.config.to_json_string(use_diff=False))
        models[kind] = {
            key: value
            for key, value in values.items()
            if value is not None and key not in ("transformers_version", "_name_or_path")
        }
        cases[name] = {"model": kind, **counted(model, settings)}
    versions = f"peft {peft.__version__}, transformers {transformers.__version__}, torch {torch.__version__}"
    document = {"source": f"{versions}: test/plan/peft_counts.py", "models": models, "cases": cases}
    with open(path, "w") as file:
        json.dump(document, file, indent=1, default=str)
        file.write("\n")


main(sys.argv[1])
