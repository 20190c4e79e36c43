"""Models that are divided over devices as `tidemark plan` divides them, for bench/plan_device.py: rank 0 of N on one device.

Collectives are those of torch's "fake" backend: they allocate and return as real ones do, but nothing is sent. So a
rank's own tensors, its gathered weights and its buckets are the real ones; what NCCL itself allocates is missing.
Needs torch 2.6 or later.
"""
import contextlib

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh

COLUMNS = ("q_proj", "k_proj", "v_proj", "gate_proj", "up_proj", "fc1")
ROWS = ("o_proj", "down_proj", "out_proj", "fc2")


def local(tensor):
    """This rank's part of a tensor."""
    return tensor.to_local() if hasattr(tensor, "to_local") else tensor


def layers_of(model):
    """The layers of all towers: of lists of modules, those that lie in no other list."""
    found = []
    for name, child in model.named_children():
        found += list(child) if isinstance(child, torch.nn.ModuleList) and len(child) > 1 else layers_of(child)
    return found


def divided(model, options, compute, device):
    """The model of rank 0. It is on `device` ("cuda" or "cpu") already; `compute`: the type of gathered weights."""
    from torch.testing._internal.distributed.fake_pg import FakeStore

    size = options.ddp * options.fsdp * options.tp
    dist.init_process_group("fake", rank=0, world_size=size, store=FakeStore())
    mesh = init_device_mesh(device, (size,))
    if options.tp > 1:
        return with_tensor_parallelism(model, mesh)
    if options.ddp > 1:
        module = torch.nn.parallel.DistributedDataParallel(model)
        module.register_comm_hook(None, sum_of_bucket)
        return module
    # As accelerate sets it up: gradients are reduced in the compute type.
    if options.fsdp_version == 1:
        from torch.distributed.fsdp import FullyShardedDataParallel, MixedPrecision
        from torch.distributed.fsdp.wrap import ModuleWrapPolicy

        policy = ModuleWrapPolicy({type(layer) for layer in layers_of(model)})
        if options.method != "full":
            # A flat parameter has one type, and PEFT's adapters are in fp32.
            for parameter in model.parameters():
                parameter.data = parameter.data.to(compute)
            from peft.utils.other import fsdp_auto_wrap_policy

            # As the Trainer: each adapter is a unit of its own.
            policy = fsdp_auto_wrap_policy(model)
        return FullyShardedDataParallel(
            model,
            auto_wrap_policy=policy,
            mixed_precision=MixedPrecision(param_dtype=compute, reduce_dtype=compute, buffer_dtype=compute),
            use_orig_params=True,
            device_id=0 if device == "cuda" else torch.device(device),
        )
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    policy = MixedPrecisionPolicy(param_dtype=compute, reduce_dtype=compute)
    for layer in layers_of(model):
        fully_shard(layer, mesh=mesh, mp_policy=policy)
    fully_shard(model, mesh=mesh, mp_policy=policy)
    return model


def sum_of_bucket(_state, bucket):
    """What all-reduce answers when nobody else sends: the fake one answers nothing, which DDP refuses."""
    future = torch.futures.Future()
    future.set_result(bucket.buffer())
    return future


def groups_of(parameters):
    """Optimizers do not mix divided and whole parameters in one group."""
    kinds = {}
    for parameter in parameters:
        kinds.setdefault(hasattr(parameter, "to_local"), []).append(parameter)
    return [{"params": each} for each in kinds.values()]


def with_tensor_parallelism(model, mesh):
    """Divides each layer's matrices, the table of tokens and the head, whose logits are gathered: transformers from 5.21 on."""
    from torch.distributed.tensor import Replicate
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    for layer in layers_of(model):
        plan = {}
        for name, module in layer.named_modules():
            last = name.rpartition(".")[2]
            if isinstance(module, torch.nn.Linear) and last in COLUMNS + ROWS:
                plan[name] = ColwiseParallel() if last in COLUMNS else RowwiseParallel()
        parallelize_module(layer, mesh, plan)
    head = next(name for name, module in model.named_modules() if module is model.get_output_embeddings())
    table = next(name for name, module in model.named_modules() if module is model.get_input_embeddings())
    return parallelize_module(
        model,
        mesh,
        {table: RowwiseParallel(input_layouts=Replicate()), head: ColwiseParallel(output_layouts=Replicate())},
    )


def synchronized(model, options, is_last):
    """Of several batches, the last one alone exchanges gradients: `no_sync` of accelerate and the Trainer."""
    if options.fsdp > 1 and options.fsdp_version == 2:
        model.set_requires_gradient_sync(is_last)
    elif options.ddp * options.fsdp > 1 and not is_last:
        return model.no_sync()
    return contextlib.nullcontext()
