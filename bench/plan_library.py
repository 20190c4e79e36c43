"""Runs one training step of small models built by transformers on the CPU, and prints their tensor bytes by part.

    python plan_library.py BATCH SEQUENCE full|lora CONFIG.json...

The counterpart of test/plan/families.py with the library itself: measures what transformers (with `lora`: PEFT, in bf16
under autocast) saves for the backward pass, not what a reimplementation in plain torch saves. Prints one
JSON object for each model and attention: eager in fp32, sdpa without a mask in bf16.
"""
import json
import math
import sys
import types

import torch
from transformers import AutoConfig, AutoModel, AutoModelForCausalLM, AutoModelForImageClassification
from transformers import AutoModelForCTC, AutoModelForImageTextToText
from transformers import AutoModelForObjectDetection
from transformers import AutoModelForMaskedLM, AutoModelForSeq2SeqLM, AutoModelForSpeechSeq2Seq

CLASSES = {
    "vit": AutoModelForImageClassification,
    "resnet": AutoModelForImageClassification,
    "convnext": AutoModelForImageClassification,
    "convnextv2": AutoModelForImageClassification,
    "dinov2": AutoModelForImageClassification,
    "dinov2_with_registers": AutoModelForImageClassification,
    "dinov3_vit": AutoModel,
    "swin": AutoModelForImageClassification,
    "yolos": AutoModelForObjectDetection,
    "clip": AutoModel,
    "chinese_clip": AutoModel,
    "siglip2": AutoModel,
    "wav2vec2": AutoModelForCTC,
    "hubert": AutoModelForCTC,
    "wavlm": AutoModelForCTC,
    "bert": AutoModelForMaskedLM,
    "roberta": AutoModelForMaskedLM,
    "xlm-roberta": AutoModelForMaskedLM,
    "distilbert": AutoModelForMaskedLM,
    "electra": AutoModelForMaskedLM,
    "mpnet": AutoModelForMaskedLM,
    "deberta": AutoModelForMaskedLM,
    "deberta-v2": AutoModelForMaskedLM,
    "modernbert": AutoModelForMaskedLM,
    "gemma3": AutoModelForImageTextToText,
    "paligemma": AutoModelForImageTextToText,
    "llava": AutoModelForImageTextToText,
    "mistral3": AutoModelForImageTextToText,
    "internvl": AutoModelForImageTextToText,
    "idefics3": AutoModelForImageTextToText,
    "smolvlm": AutoModelForImageTextToText,
    "llama4": AutoModelForImageTextToText,
    "qwen2_vl": AutoModelForImageTextToText,
    "qwen2_5_vl": AutoModelForImageTextToText,
    "qwen3_vl": AutoModelForImageTextToText,
    "qwen3_5": AutoModelForImageTextToText,
    "qwen3_5_moe": AutoModelForImageTextToText,
    "gemma4": AutoModelForImageTextToText,
    "glm4v": AutoModelForImageTextToText,
    "t5": AutoModelForSeq2SeqLM,
    "bart": AutoModelForSeq2SeqLM,
    "whisper": AutoModelForSpeechSeq2Seq,
}


def configured(values):
    """A configuration as `build` takes it: of transformers an object, of diffusers its values."""
    return values if "_class_name" in values else AutoConfig.for_model(**values)


def build(config, attention, dtype=torch.float32, device="cpu"):
    """The model of a configuration with random weights, made for training."""
    if isinstance(config, dict):
        return build_diffusion(config, attention, dtype, device)
    config.use_cache = False
    kind = CLASSES.get(config.model_type, AutoModelForCausalLM)
    without_attention = config.model_type in ("mamba", "mamba2", "falcon_mamba", "resnet", "convnext", "convnextv2")
    kernel = {} if without_attention else {"attn_implementation": attention}
    with torch.device(device):
        return kind.from_config(config, dtype=dtype, **kernel)


def build_diffusion(config, attention, dtype, device):
    import diffusers
    from diffusers.models.attention_processor import AttnProcessor, AttnProcessor2_0

    with torch.device(device):
        model = getattr(diffusers, config["_class_name"]).from_config(config).to(dtype)
    # The classes whose image and prompt attend to each other have one kernel alone.
    if hasattr(model, "set_attn_processor") and config["_class_name"] not in ("SD3Transformer2DModel", "FluxTransformer2DModel"):
        model.set_attn_processor(AttnProcessor() if attention == "eager" else AttnProcessor2_0())
    return model


class Denoising(torch.nn.Module):
    """A diffusion model whose forward pass returns the loss of the predicted noise, as a training script computes it."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, noise, **inputs):
        predicted = self.model(**inputs).sample.float()
        loss = torch.nn.functional.mse_loss(predicted[:, : noise.shape[1]], noise.float())
        return types.SimpleNamespace(loss=loss)


class Regression(torch.nn.Module):
    """A model without a head, whose loss is the mean square of its last rows."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, **inputs):
        return types.SimpleNamespace(loss=self.model(**inputs).last_hidden_state.float().square().mean())


def diffusion_inputs(config, batch):
    """Latents at the model's own size, a time step for each, and what the model is conditioned on."""
    kind = config["_class_name"]
    if kind == "FluxTransformer2DModel":
        return flux_inputs(config, batch)
    side, channels = config["sample_size"], config["in_channels"]
    latents = torch.randn(batch, channels, side, side)
    steps = torch.randint(0, 1000, (batch,))
    inputs = {"noise": torch.randn(batch, min(channels, config["out_channels"]), side, side)}
    if kind == "UNet2DModel":
        return {**inputs, "sample": latents, "timestep": steps}
    if kind == "UNet2DConditionModel":
        added = {}
        if config.get("addition_embed_type") == "text_time":
            width = config["projection_class_embeddings_input_dim"] - 6 * config["addition_time_embed_dim"]
            added = {"added_cond_kwargs": {"text_embeds": torch.randn(batch, width), "time_ids": torch.zeros(batch, 6)}}
        text = torch.randn(batch, TEXT_TOKENS, config["cross_attention_dim"])
        return {**inputs, "sample": latents, "timestep": steps, "encoder_hidden_states": text, **added}
    inputs = {**inputs, "hidden_states": latents, "timestep": steps}
    if kind == "PixArtTransformer2DModel":
        text = torch.randn(batch, PIXART_TOKENS, config["caption_channels"])
        added = {}
        if side == 128:
            added = {"added_cond_kwargs": {"resolution": torch.ones(batch, 2), "aspect_ratio": torch.ones(batch, 1)}}
        return {**inputs, "encoder_hidden_states": text, **added}
    if kind == "SD3Transformer2DModel":
        text = torch.randn(batch, SD3_TOKENS, config["joint_attention_dim"])
        return {**inputs, "encoder_hidden_states": text, "pooled_projections": torch.randn(batch, config["pooled_projection_dim"])}
    return {**inputs, "class_labels": torch.zeros(batch, dtype=torch.long)}


def flux_inputs(config, batch):
    """Latents of 1024 x 1024 pixels, of which 2 x 2 are one position."""
    side, channels = 64, config["in_channels"]
    return {
        "noise": torch.randn(batch, side**2, channels),
        "hidden_states": torch.randn(batch, side**2, channels),
        "encoder_hidden_states": torch.randn(batch, FLUX_TOKENS, config["joint_attention_dim"]),
        "pooled_projections": torch.randn(batch, config["pooled_projection_dim"]),
        "timestep": torch.rand(batch),
        "img_ids": torch.zeros(side**2, 3),
        "txt_ids": torch.zeros(FLUX_TOKENS, 3),
        "guidance": torch.ones(batch) if config["guidance_embeds"] else None,
    }


TEXT_TOKENS = 77  # of CLIP's text encoder
PIXART_TOKENS = 120  # of T5, as in the published scripts
SD3_TOKENS = 333  # 77 of CLIP, 256 of T5
FLUX_TOKENS = 512


def inputs_of(config, batch, sequence, device="cpu"):
    """One batch as the model's forward pass takes it, with labels."""
    with torch.device(device):
        if isinstance(config, dict):
            return diffusion_inputs(config, batch)
        return random_inputs(config, batch, sequence)


def random_inputs(config, batch, sequence):
    kind = config.model_type
    if CLASSES.get(kind) is AutoModelForImageClassification:
        side = getattr(config, "image_size", 224)
        return {"pixel_values": torch.randn(batch, 3, side, side), "labels": torch.zeros(batch, dtype=torch.long)}
    if kind == "yolos":
        objects = {"class_labels": torch.zeros(2, dtype=torch.long), "boxes": torch.full((2, 4), 0.5)}
        return {"pixel_values": torch.randn(batch, 3, *config.image_size), "labels": [objects] * batch}
    if kind == "dinov3_vit":
        return {"pixel_values": torch.randn(batch, 3, config.image_size, config.image_size)}
    if kind in ("wav2vec2", "hubert", "wavlm"):
        step = math.prod(config.conv_stride)
        first = 1
        for kernel, stride in reversed(list(zip(config.conv_kernel, config.conv_stride))):
            first = (first - 1) * stride + kernel
        samples = torch.randn(batch, (sequence - 1) * step + first)
        return {"input_values": samples, "labels": torch.randint(1, config.vocab_size, (batch, sequence // 4))}
    if kind == "siglip2":
        vision, text = config.vision_config, config.text_config
        side = int(vision.num_patches**0.5)
        ids = torch.randint(1, text.vocab_size - 1, (batch, text.max_position_embeddings))
        pixels = torch.randn(batch, side**2, 3 * vision.patch_size**2)
        shapes = torch.tensor([[side, side]] * batch)
        return {"pixel_values": pixels, "spatial_shapes": shapes, "input_ids": ids, "return_loss": True}
    if kind in ("clip", "chinese_clip"):
        side, length = config.vision_config.image_size, config.text_config.max_position_embeddings
        ids = torch.randint(1, config.text_config.vocab_size - 1, (batch, length))
        return {"pixel_values": torch.randn(batch, 3, side, side), "input_ids": ids, "return_loss": True}
    if hasattr(config, "text_config"):
        return image_and_text(config, batch, sequence)
    ids = torch.randint(2, config.vocab_size, (batch, sequence))
    if kind == "whisper":
        features = torch.randn(batch, config.num_mel_bins, 2 * config.max_source_positions)
        return {"input_features": features, "decoder_input_ids": ids, "labels": ids}
    return {"input_ids": ids, "labels": ids}


def image_and_text(config, batch, sequence):
    """One image and a text for each sequence; of the text, as many tokens as the image has rows are those of the image."""
    vision = config.vision_config
    ids = torch.randint(10, config.text_config.vocab_size, (batch, sequence))
    if config.model_type == "gemma4":
        return pooled_image(config, ids)
    if config.model_type.startswith(("qwen", "glm4v")):
        # The side that a plan assumes, because the configuration has none.
        side = 448 // vision.patch_size
        width = 3 * vision.temporal_patch_size * vision.patch_size**2
        pixels = torch.randn(batch * side**2, width)
        rows = (side // vision.spatial_merge_size) ** 2
        ids[:, :rows] = config.image_token_id
        grid = torch.tensor([[1, side, side]] * batch)
        kinds = (ids == config.image_token_id).int()
        return {"pixel_values": pixels, "image_grid_thw": grid, "mm_token_type_ids": kinds, "input_ids": ids, "labels": ids}
    if config.model_type in MERGED:
        return merged_image(config, ids)
    pixels = torch.randn(batch, 3, vision.image_size, vision.image_size)
    side = vision.image_size // vision.patch_size
    rows = config.mm_tokens_per_image if config.model_type == "gemma3" else side**2
    ids[:, :rows] = config.image_token_index if hasattr(config, "image_token_index") else config.image_token_id
    kinds = (torch.arange(sequence) < rows).int().expand(batch, sequence)
    return {"pixel_values": pixels, "token_type_ids": kinds, "input_ids": ids, "labels": ids}


def pooled_image(config, ids):
    """An image of Gemma 4: 280 rows of the text, each the mean of a square of patches."""
    vision = config.vision_config
    kernel = vision.pooling_kernel_size
    high, wide = 14 * kernel, 20 * kernel
    places = torch.stack(torch.meshgrid(torch.arange(wide), torch.arange(high), indexing="xy"), dim=-1).reshape(-1, 2)
    pixels = torch.rand(ids.shape[0], high * wide, 3 * vision.patch_size**2)
    ids[:, : high * wide // kernel**2] = config.image_token_id
    kinds = (ids == config.image_token_id).int()
    return {
        "pixel_values": pixels,
        "image_position_ids": places.expand(ids.shape[0], -1, 2),
        "mm_token_type_ids": kinds,
        "input_ids": ids,
        "labels": ids,
    }


# Families that join 2 x 2 rows of an image into one of the text.
MERGED = ("mistral3", "internvl", "idefics3", "smolvlm", "llama4")


def merged_image(config, ids):
    vision, kind = config.vision_config, config.model_type
    # Pixtral's configuration has the largest side, not that of an image.
    image = 448 if kind == "mistral3" else vision.image_size
    image, patch = (size if isinstance(size, int) else size[0] for size in (image, vision.patch_size))
    pixels = torch.randn(ids.shape[0], 3, image, image)
    ids[:, : (image // patch // 2) ** 2] = config.image_token_id
    inputs = {"input_ids": ids, "labels": ids}
    if kind == "mistral3":
        return {**inputs, "pixel_values": pixels, "image_sizes": torch.tensor([[image, image]] * ids.shape[0])}
    return {**inputs, "pixel_values": pixels[:, None] if kind in ("idefics3", "smolvlm") else pixels}


def nbytes(tensors):
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


class Saved:
    """Storages that autograd saves in a forward pass, without parameters and buffers."""

    def __init__(self, own):
        self.own, self.bytes, self.kinds, self.kept = own, {}, {}, []

    def pack(self, tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in self.own and storage.data_ptr() not in self.bytes:
            self.bytes[storage.data_ptr()] = storage.nbytes()
            kind = f"{str(tensor.dtype)[6:]} {list(tensor.shape)} in {storage.nbytes()}"
            self.kinds[kind] = self.kinds.get(kind, 0) + 1
            self.kept.append(tensor)  # keeps the tensors alive, so that no address is used twice
        return tensor

    def largest(self):
        ordered = sorted(self.kinds.items(), key=lambda item: -item[1] * int(item[0].split()[-1]))
        return [{"tensor": kind, "count": count} for kind, count in ordered[:24]]


def measure(path, attention, batch, sequence, lora):
    """Bytes of the tensors of one step, by part."""
    torch.manual_seed(0)
    with open(path) as file:
        config = configured(json.load(file))
    # Fused kernels read groups of keys in 16 bit alone.
    model = build(config, attention, torch.float32 if attention == "eager" else torch.bfloat16)
    if lora:
        from peft import LoraConfig, get_peft_model

        model = get_peft_model(model.to(torch.bfloat16), LoraConfig(r=8, target_modules=["q_proj", "k_proj", "v_proj", "o_proj"]))
    if isinstance(config, dict):
        model = Denoising(model)
    elif config.model_type == "dinov3_vit":
        model = Regression(model)
    dtype = next(model.parameters()).dtype
    model.train()
    inputs = {
        name: value.to(dtype) if torch.is_tensor(value) and value.is_floating_point() else value
        for name, value in inputs_of(config, batch, sequence).items()
    }
    own = {tensor.untyped_storage().data_ptr() for tensor in [*model.parameters(), *model.buffers()]}
    saved = Saved(own)
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(trained, fused=True)
    with torch.autograd.graph.saved_tensors_hooks(saved.pack, lambda tensor: tensor):
        with torch.autocast("cpu", torch.bfloat16, enabled=lora):
            loss = model(**inputs).loss
    total = sum(saved.bytes.values())
    loss.backward()
    optimizer.step()
    states = [value for state in optimizer.state.values() for value in state.values() if value.numel() > 1]
    return {
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "weights": nbytes(model.parameters()),
        "gradients": nbytes(parameter.grad for parameter in trained if parameter.grad is not None),
        "optimizer": nbytes(states),
        "saved": total,
        "largest": saved.largest(),
    }


def main():
    batch, sequence = int(sys.argv[1]), int(sys.argv[2])
    lora = sys.argv[3] == "lora"
    for path in sys.argv[4:]:
        for attention in ("eager", "sdpa"):
            try:
                measured = measure(path, attention, batch, sequence, lora)
            except Exception as error:  # One model must not end the others.
                measured = {"error": f"{type(error).__name__}: {error}"[:200]}
            print(json.dumps({"path": path, "attention": attention, **measured}), flush=True)


if __name__ == "__main__":
    main()
