"""Techniques of training that a case of bench/plan_device.py names: quantized layers, checkpoints, losses, optimizers."""
import functools
import types

import torch


def quantized(model, kind):
    """The model with bitsandbytes' linear layers, as load_in_4bit and load_in_8bit make them: all but the head."""
    head = model.get_output_embeddings()
    make = in_8_bit if kind == "int8" else functools.partial(in_4_bit, double=kind == "nf4-dq")
    for parent in list(model.modules()):
        for name, child in list(parent.named_children()):
            if type(child) is torch.nn.Linear and child is not head:
                linear = make(child)
                if child.bias is not None:
                    linear.bias = child.bias
                setattr(parent, name, linear)
    model.is_loaded_in_8bit, model.is_loaded_in_4bit = kind == "int8", kind != "int8"
    model.is_quantized = True
    model.quantization_method = "bitsandbytes"
    return model


def in_4_bit(child, double):
    import bitsandbytes

    linear = bitsandbytes.nn.Linear4bit(
        child.in_features, child.out_features, bias=child.bias is not None,
        compute_dtype=torch.bfloat16, quant_type="nf4", compress_statistics=double, device="meta",
    )
    linear.weight = bitsandbytes.nn.Params4bit(
        child.weight.data, requires_grad=False, quant_type="nf4", compress_statistics=double, module=linear
    ).to(child.weight.device)
    return linear


def in_8_bit(child):
    import bitsandbytes

    linear = bitsandbytes.nn.Linear8bitLt(
        child.in_features, child.out_features, bias=child.bias is not None, has_fp16_weights=False, threshold=6.0, device="meta",
    )
    # Moving from the host is what quantizes.
    weight = bitsandbytes.nn.Int8Params(child.weight.data.cpu(), requires_grad=False, has_fp16_weights=False)
    linear.weight = weight.to(child.weight.device)
    return linear


def with_checkpoints(model, kind):
    if hasattr(model, "enable_gradient_checkpointing"):
        model.enable_gradient_checkpointing()
        return
    own = {"context_fn": selective} if kind == "selective" else {}
    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False, **own})


def selective():
    """torchtitan's policy: attention and every second matrix product are kept, all else is recomputed."""
    from torch.utils.checkpoint import CheckpointPolicy, create_selective_checkpoint_contexts

    products = {torch.ops.aten.mm.default, torch.ops.aten.addmm.default}
    attention = {
        torch.ops.aten._scaled_dot_product_flash_attention.default,
        torch.ops.aten._scaled_dot_product_efficient_attention.default,
        torch.ops.aten._scaled_dot_product_cudnn_attention.default,
    }
    counts = {False: 0, True: 0}

    def policy(context, operation, *_values, **_named):
        if operation in products:
            counts[context.is_recompute] += 1
            is_kept = counts[context.is_recompute] % 2 == 1
        else:
            is_kept = operation in attention
        return CheckpointPolicy.MUST_SAVE if is_kept else CheckpointPolicy.PREFER_RECOMPUTE

    return create_selective_checkpoint_contexts(policy)


CHUNKS = 8


class losses(torch.nn.Module):
    """A decoder whose loss is computed without all logits at once: torchtune's chunks, or Liger's fused kernel."""

    def __init__(self, model, kind):
        super().__init__()
        self.model, self.kind = model, kind

    def forward(self, labels, **inputs):
        rows = self.model.base_model(**inputs).last_hidden_state[:, :-1]
        head, labels = self.model.get_output_embeddings(), labels[:, 1:]
        if self.kind == "fused":
            from liger_kernel.transformers import LigerFusedLinearCrossEntropyLoss

            loss = LigerFusedLinearCrossEntropyLoss()(head.weight, rows.flatten(0, 1), labels.flatten())
            return types.SimpleNamespace(loss=loss)
        logits = [head(chunk) for chunk in rows.chunk(CHUNKS, dim=1)]
        parts = [
            torch.nn.functional.cross_entropy(each.float().flatten(0, 1), chunk.flatten(), reduction="sum")
            for each, chunk in zip(logits, labels.chunk(CHUNKS, dim=1))
        ]
        return types.SimpleNamespace(loss=sum(parts) / labels.numel())


def optimizer_of(options, model, groups):
    if not options.optimizer_in_backward:
        return make_optimizer(options.optimizer, model, groups)
    return InBackward([parameter for group in groups for parameter in group["params"]], options.optimizer, model)


def make_optimizer(name, model, groups):
    if "8bit" in name or "paged" in name or name == "lion":
        import bitsandbytes.optim

        return {
            "adamw8bit": bitsandbytes.optim.AdamW8bit,
            "paged-adamw8bit": bitsandbytes.optim.PagedAdamW8bit,
            "paged-adamw": bitsandbytes.optim.PagedAdamW,
            "lion": bitsandbytes.optim.Lion,
            "lion8bit": bitsandbytes.optim.Lion8bit,
        }[name](groups)
    if name == "muon":
        return Muon(model, groups)
    return {
        "adamw": lambda: torch.optim.AdamW(groups, fused=True),
        "adamw-foreach": lambda: torch.optim.AdamW(groups, foreach=True),
        "sgd": lambda: torch.optim.SGD(groups, lr=1e-3),
        "sgd-momentum": lambda: torch.optim.SGD(groups, lr=1e-3, momentum=0.9),
        "adafactor": lambda: torch.optim.Adafactor(groups),
    }[name]()


class Several:
    """Optimizers that share a model's parameters, used as one."""

    def __init__(self, optimizers):
        self.optimizers = optimizers

    @property
    def state(self):
        return {parameter: state for each in self.optimizers for parameter, state in each.state.items()}

    def step(self):
        for each in self.optimizers:
            each.step()

    def zero_grad(self, set_to_none=True):
        for each in self.optimizers:
            each.zero_grad(set_to_none=set_to_none)


class Muon(Several):
    """As its authors use it: Muon for the layers' matrices, AdamW for tables, head, norms and biases."""

    def __init__(self, model, groups):
        outer = {id(module.weight) for module in (model.get_input_embeddings(), model.get_output_embeddings())}
        every = [parameter for group in groups for parameter in group["params"]]
        matrices = [parameter for parameter in every if parameter.ndim == 2 and id(parameter) not in outer]
        chosen = {id(parameter) for parameter in matrices}
        others = [parameter for parameter in every if id(parameter) not in chosen]
        super().__init__([torch.optim.Muon(matrices), torch.optim.AdamW(others, fused=True)])


class InBackward(Several):
    """An optimizer for each parameter, whose step runs as soon as the gradient is there and then frees it."""

    def __init__(self, parameters, name, model):
        super().__init__([make_optimizer(name, model, [{"params": [parameter]}]) for parameter in parameters])
        for parameter, optimizer in zip(parameters, self.optimizers):
            parameter.register_post_accumulate_grad_hook(functools.partial(self.consume, optimizer))

    @staticmethod
    def consume(optimizer, _parameter):
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    def step(self):
        """Everything is done by then."""
