"""Runs one training step of a small model built by transformers on the CPU, and prints its tensor bytes by part.

    python plan_library.py CONFIG.json sdpa|eager BATCH SEQUENCE [lora]

The counterpart of test/plan/families.py with the library itself: measures what transformers (with `lora`: PEFT, in bf16
under autocast) saves for the backward pass, not what a reimplementation in plain torch saves. Prints one JSON object.
"""
import json
import sys

import torch
from transformers import AutoConfig, AutoModel, AutoModelForCausalLM, AutoModelForImageClassification
from transformers import AutoModelForMaskedLM, AutoModelForSeq2SeqLM, AutoModelForSpeechSeq2Seq

CLASSES = {
    "vit": AutoModelForImageClassification,
    "resnet": AutoModelForImageClassification,
    "clip": AutoModel,
    "bert": AutoModelForMaskedLM,
    "roberta": AutoModelForMaskedLM,
    "distilbert": AutoModelForMaskedLM,
    "t5": AutoModelForSeq2SeqLM,
    "bart": AutoModelForSeq2SeqLM,
    "whisper": AutoModelForSpeechSeq2Seq,
}


def build(config, attention, dtype=torch.float32, device="cpu"):
    """The model of a configuration with random weights, made for training."""
    config.use_cache = False
    kind = CLASSES.get(config.model_type, AutoModelForCausalLM)
    without_attention = config.model_type in ("mamba", "mamba2", "falcon_mamba", "resnet")
    # FlashAttention-2 is a library of its own; without a mask, torch's kernel takes its place and reads grouped keys, too.
    kernel = {} if without_attention else {"attn_implementation": "eager" if attention == "eager" else "sdpa"}
    with torch.device(device):
        return kind.from_config(config, dtype=dtype, **kernel)


def inputs_of(config, batch, sequence, device="cpu"):
    """One batch as the model's forward pass takes it, with labels."""
    with torch.device(device):
        return random_inputs(config, batch, sequence)


def random_inputs(config, batch, sequence):
    kind = config.model_type
    if kind in ("vit", "resnet"):
        side = getattr(config, "image_size", 224)
        return {"pixel_values": torch.randn(batch, 3, side, side), "labels": torch.zeros(batch, dtype=torch.long)}
    if kind == "clip":
        side, length = config.vision_config.image_size, config.text_config.max_position_embeddings
        ids = torch.randint(1, config.text_config.vocab_size - 1, (batch, length))
        return {"pixel_values": torch.randn(batch, 3, side, side), "input_ids": ids, "return_loss": True}
    ids = torch.randint(2, config.vocab_size, (batch, sequence))
    if kind == "whisper":
        features = torch.randn(batch, config.num_mel_bins, 2 * config.max_source_positions)
        return {"input_features": features, "decoder_input_ids": ids, "labels": ids}
    return {"input_ids": ids, "labels": ids}


def nbytes(tensors):
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def main():
    path, attention, batch, sequence = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    lora = len(sys.argv) > 5
    torch.manual_seed(0)
    with open(path) as file:
        values = json.load(file)
    config = AutoConfig.for_model(**values)
    model = build(config, attention)
    if lora:
        from peft import LoraConfig, get_peft_model

        model = get_peft_model(model.to(torch.bfloat16), LoraConfig(r=8, target_modules=["q_proj", "k_proj", "v_proj", "o_proj"]))
    model.train()
    inputs = inputs_of(config, batch, sequence)
    own = {tensor.untyped_storage().data_ptr() for tensor in [*model.parameters(), *model.buffers()]}
    own |= {tensor.untyped_storage().data_ptr() for tensor in inputs.values() if isinstance(tensor, torch.Tensor)}
    saved, kept = {}, []

    def pack(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            saved[storage.data_ptr()] = storage.nbytes()
            kept.append(tensor)  # keeps the tensors alive, so that no address is used twice
        return tensor

    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(trained, fused=True)
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        with torch.autocast("cpu", torch.bfloat16, enabled=lora):
            output = model(**inputs)
            loss = output.loss
    total = sum(saved.values())
    loss.backward()
    optimizer.step()
    states = [value for state in optimizer.state.values() for value in state.values() if value.numel() > 1]
    print(json.dumps({
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "weights": nbytes(model.parameters()),
        "gradients": nbytes(parameter.grad for parameter in trained if parameter.grad is not None),
        "optimizer": nbytes(states),
        "saved": total,
    }))


if __name__ == "__main__":
    main()
