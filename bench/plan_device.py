"""Measures training steps and prefills on a GPU, for comparison with `tidemark plan`.

    python plan_device.py OUTPUT [--only ID,ID] [--limit SECONDS] [--device cuda|cpu] [--cases FILE]

Each case of plan_device_cases.json is a model and the options that plan it; the same options say what runs here. Models
are built from their configurations with random weights, each in a process of its own, so that every case has its own
CUDA context and its own caching allocator. OUTPUT/measured.json is written after each case; OUTPUT/ID.pickle are
allocator snapshots. `npm run bench -- plan --device OUTPUT/measured.json` compares. Needs torch, transformers and peft,
for diffusion models diffusers, for QLoRA and 8-bit optimizers bitsandbytes; no network. Bytes everywhere.
"""
import argparse
import functools
import gc
import json
import os
import subprocess
import sys
import threading
import time
import traceback

# Whether there is a device is asked of NVML: a waiting worker must not have a CUDA context.
os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"

import torch

from plan_device_memory import DTYPES, Device, blocks_at_peak, cache_tensors, larger, machine
from plan_library import Denoising, Saved, build, configured, inputs_of, nbytes
from plan_parallel import divided, groups_of, local, synchronized
from plan_techniques import losses, optimizer_of, quantized, with_checkpoints

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
STEPS = 3
NEW_TOKENS = 16
CASE_LIMIT_S = 30
WORKERS = min(8, os.cpu_count() or 4)


def parse(words):
    """The options of `tidemark plan` that decide what runs."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--serve", action="store_true")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--method", default="full")
    parser.add_argument("--optimizer", default="adamw")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--seq", type=int, default=512)
    parser.add_argument("--checkpointing")
    parser.add_argument("--dtype", default="bf16")
    parser.add_argument("--weights")
    parser.add_argument("--attention", default="sdpa")
    parser.add_argument("--no-padding", action="store_true")
    parser.add_argument("--lora-rank", type=int, default=8)
    parser.add_argument("--lora-targets", default="")
    parser.add_argument("--lora-dropout", action="store_true")
    parser.add_argument("--quantize")
    parser.add_argument("--loss", default="full")
    parser.add_argument("--accumulation", type=int, default=1)
    parser.add_argument("--optimizer-in-backward", action="store_true")
    parser.add_argument("--context", type=int, default=2048)
    parser.add_argument("--concurrency", type=int, default=1)
    parser.add_argument("--ddp", type=int, default=1)
    parser.add_argument("--fsdp", type=int, default=1)
    parser.add_argument("--fsdp-version", type=int, default=2)
    parser.add_argument("--tp", type=int, default=1)
    return parser.parse_args(words.split())


def config_of(case, models):
    values = dict(models[case["model"]])
    layers = case.get("layers")
    if layers is not None:
        name = next(key for key in ("num_hidden_layers", "n_layer") if key in values)
        values[name] = layers
        if "layer_types" in values:
            values["layer_types"] = values["layer_types"][:layers]
    return values


def with_adapters(model, options):
    from peft import LoraConfig, get_peft_model, prepare_model_for_kbit_training

    if options.method == "qlora":
        model = prepare_model_for_kbit_training(quantized(model, options.quantize or "nf4"), gradient_checkpointing_kwargs={"use_reentrant": False})
        usual = "all"
    else:
        usual = "attention"
        if options.checkpointing == "full" and not is_diffusion(model):
            model.enable_input_require_grads()
    wanted = options.lora_targets or usual
    names = {"all": "all-linear", "attention": ["q_proj", "k_proj", "v_proj", "o_proj"]}
    if is_diffusion(model):
        names["attention"] = ["to_q", "to_k", "to_v", "to_out.0", "add_q_proj", "add_k_proj", "add_v_proj", "to_add_out"]
    targets = names.get(wanted) or wanted.split(",")
    if is_diffusion(model):
        return with_diffusion_adapters(model, LoraConfig(r=options.lora_rank, lora_alpha=options.lora_rank, target_modules=targets))
    task = None if model.config.is_encoder_decoder else "CAUSAL_LM"
    dropout = 0.05 if options.lora_dropout else 0.0
    return get_peft_model(model, LoraConfig(r=options.lora_rank, target_modules=targets, lora_dropout=dropout, task_type=task))


def is_diffusion(model):
    return hasattr(model, "enable_gradient_checkpointing")


def with_diffusion_adapters(model, config):
    """As the training scripts of diffusers add them: the model frozen in 16 bit, the adapters in fp32."""
    model.requires_grad_(False)
    model.add_adapter(config)
    for parameter in model.parameters():
        if parameter.requires_grad:
            parameter.data = parameter.data.float()
    return model


def train(case, config, options, device, out):
    compute = DTYPES[options.dtype]
    wide = options.weights == "fp32" or compute is torch.float32
    model = build(config, options.attention, torch.float32 if wide else compute, device.kind)
    checkpoints = options.checkpointing or ("full" if options.method == "qlora" else "none")
    if options.method != "full":
        model = with_adapters(model, options)
    if checkpoints != "none":
        with_checkpoints(model, checkpoints)
    if is_diffusion(model):
        model = Denoising(model)
    elif options.loss != "full":
        model = losses(model, options.loss)
    model.train()
    is_divided = options.ddp * options.fsdp * options.tp > 1
    if is_divided:
        model = divided(model, options, compute, device.kind)
    module = torch.compile(model) if options.compile else model
    inputs = inputs_of(config, options.batch, options.seq, device.kind)
    if options.attention == "sdpa" and not options.no_padding and not case.get("packed") and "input_ids" in inputs and "pixel_values" not in inputs and config.model_type != "whisper":
        # A padded batch: with a mask, transformers repeats grouped keys and values for each head.
        inputs["attention_mask"] = torch.ones_like(inputs["input_ids"])
        inputs["attention_mask"][0, -1] = 0
    if compute is not torch.float32 and not wide and options.method == "full":
        inputs = {name: value.to(compute) if torch.is_tensor(value) and value.is_floating_point() else value for name, value in inputs.items()}
    if case.get("packed"):
        # Four sequences in each row: transformers finds where they begin, and masks what lies in another one.
        inputs["position_ids"] = (torch.arange(options.seq, device=device.kind) % (options.seq // 4)).expand(options.batch, -1)
    autocast = (wide and compute is not torch.float32) or options.method != "full"
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    out["parameters"] = sum(parameter.numel() for parameter in model.parameters())
    out["trained"] = sum(parameter.numel() for parameter in trained)
    out["weights"] = nbytes(local(parameter) for parameter in model.parameters())
    out["buffers"] = nbytes(model.buffers())
    out["inputs"] = nbytes(value for value in inputs.values() if torch.is_tensor(value))
    if options.method == "qlora":
        states = [module.weight.quant_state for module in model.modules() if hasattr(getattr(module, "weight", None), "quant_state")]
        out["quantizationStates"] = nbytes(tensor for state in states for tensor in (state.absmax, state.code) if tensor is not None)
    optimizer = optimizer_of(options, model, groups_of(trained))
    scaler = torch.amp.GradScaler(device.kind, enabled=compute is torch.float16)
    gc.collect()
    if device.kind == "cuda":
        torch.cuda.empty_cache()
    device.reset()
    out["built"] = device.figures()

    def forward():
        with torch.autocast(device.kind, compute, enabled=autocast):
            return module(**inputs)

    def step(record):
        record["before"] = device.figures()
        for batch in range(options.accumulation):
            with synchronized(model, options, batch == options.accumulation - 1):
                output = forward()
                record["forward"] = larger(record.get("forward"), device.figures())
                device.reset()
                scaler.scale(output.loss).backward()
                record["backward"] = larger(record.get("backward"), device.figures())
                device.reset()
        record["gradients"] = nbytes(local(parameter.grad) for parameter in trained if parameter.grad is not None)
        scaler.step(optimizer)
        scaler.update()
        record["step"] = device.figures()
        device.reset()
        optimizer.zero_grad(set_to_none=True)

    out["steps"] = []
    for _ in range(STEPS):
        record = {}
        out["steps"].append(record)
        device.reset()
        step(record)
    moments = [moment for record in out["steps"] for moment in (record["forward"], record["backward"], record["step"])]
    out["allocated"] = max(moment["peakAllocated"] for moment in moments)
    out["reserved"] = max(moment["peakReserved"] for moment in moments)
    out["used"] = device.used()
    if case.get("snapshot") and device.kind == "cuda":
        torch.cuda.memory._dump_snapshot(os.path.join(case["output"], f"{case['id']}.pickle"))
        torch.cuda.memory._record_memory_history(enabled=None)
    out["peakBlocks"] = blocks_at_peak(device, lambda: step({}))
    values = [local(value) for state in optimizer.state.values() for value in state.values() if torch.is_tensor(value)]
    out["optimizer"] = nbytes(values)
    if checkpoints == "none" and not options.compile and not is_divided:
        own = {tensor.untyped_storage().data_ptr() for tensor in [*model.parameters(), *model.buffers()]}
        own |= {tensor.untyped_storage().data_ptr() for tensor in inputs.values() if torch.is_tensor(tensor)}
        saved = Saved(own)
        with torch.autograd.graph.saved_tensors_hooks(saved.pack, lambda tensor: tensor):
            output = forward()
        out["saved"] = sum(saved.bytes.values())
        out["savedKinds"] = saved.largest()
        del output


@torch.no_grad()
def serve(case, config, options, device, out):
    model = build(config, options.attention, DTYPES[options.dtype], device.kind).eval()
    if options.quantize is not None:
        model = quantized(model, options.quantize)
    out["parameters"] = sum(parameter.numel() for parameter in model.parameters())
    out["weights"] = nbytes(model.parameters())
    out["buffers"] = nbytes(model.buffers())
    ids = torch.randint(2, config.vocab_size, (options.concurrency, options.context - NEW_TOKENS), device=device.kind)
    gc.collect()
    if device.kind == "cuda":
        torch.cuda.empty_cache()
    device.reset()
    out["built"] = device.figures()
    if case.get("generate"):
        return generate(case, model, ids, device, out)
    # What generate() does: the prompt at once, with logits of its last token alone, then one token after another.
    output = model(input_ids=ids, use_cache=True, logits_to_keep=1)
    out["prefill"] = device.figures()
    device.reset()
    for _ in range(NEW_TOKENS):
        last = output.logits[:, -1:].argmax(-1)
        cache = output.past_key_values
        del output
        output = model(input_ids=last, past_key_values=cache, use_cache=True, logits_to_keep=1)
    out["decode"] = device.figures()
    tensors = cache_tensors(output.past_key_values)
    shapes = sorted({f"{str(tensor.dtype)[6:]} {list(tensor.shape)}" for tensor in tensors})
    out["cache"] = nbytes(tensors)
    out["cacheShapes"] = shapes[:8]
    out["allocated"] = max(out["prefill"]["peakAllocated"], out["decode"]["peakAllocated"])
    out["reserved"] = max(out["prefill"]["peakReserved"], out["decode"]["peakReserved"])
    out["used"] = device.used()
    if case.get("snapshot") and device.kind == "cuda":
        torch.cuda.memory._dump_snapshot(os.path.join(case["output"], f"{case['id']}.pickle"))
        torch.cuda.memory._record_memory_history(enabled=None)
    del output, cache, tensors
    out["peakBlocks"] = blocks_at_peak(device, lambda: model(input_ids=ids, use_cache=True, logits_to_keep=1) and None)


def generate(case, model, ids, device, out):
    """The library's own generate(), with the cache that it chooses."""
    model.config.use_cache = True
    generated = model.generate(
        input_ids=ids, attention_mask=torch.ones_like(ids), max_new_tokens=NEW_TOKENS, min_new_tokens=NEW_TOKENS,
        do_sample=False, use_cache=True, return_dict_in_generate=True,
    )
    figures = device.figures()
    out["cache"] = nbytes(cache_tensors(generated.past_key_values))
    out["allocated"], out["reserved"] = figures["peakAllocated"], figures["peakReserved"]
    out["used"] = device.used()
    del generated
    run = functools.partial(model.generate, input_ids=ids, attention_mask=torch.ones_like(ids), max_new_tokens=2, do_sample=False, use_cache=True)
    out["peakBlocks"] = blocks_at_peak(device, lambda: run() is None)


def run_case(case, models, device):
    out = {"id": case["id"]}
    started = time.monotonic()
    try:
        if device.kind == "cuda":
            torch.cuda.init()
            torch.zeros(1, device="cuda")
            out["contextUsed"] = device.used()
        if case["id"] == "machine":
            machine(device, out)
        else:
            options = parse(case["words"])
            config = configured(config_of(case, models))
            if case.get("snapshot") and device.kind == "cuda":
                torch.cuda.memory._record_memory_history(max_entries=30000, stacks="python")
            (serve if options.serve else train)(case, config, options, device, out)
    except torch.OutOfMemoryError as error:
        out["outOfMemory"] = str(error)
        out["atFailure"] = device.figures()
    except Exception as error:  # One case must not end the others.
        out["error"] = f"{type(error).__name__}: {error}"[:600]
        out["trace"] = traceback.format_exc()[-1500:]
    out["seconds"] = round(time.monotonic() - started, 1)
    return out


class Worker:
    """A process that has imported the libraries and waits for its one case, so that imports take no time on the device."""

    def __init__(self):
        command = [sys.executable, os.path.abspath(__file__), "--worker"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def measure(self, case, models, device, limit):
        """What it measured, or why there is nothing after `limit` seconds."""
        self.process.stdout.readline()
        baseline = device.used()
        alarm = threading.Timer(limit, self.process.kill)
        alarm.start()
        text, _ = self.process.communicate(json.dumps({"case": case, "models": models, "device": device.kind}))
        alarm.cancel()
        out = json.loads(text) if text else {"id": case["id"], "error": f"no result after {limit:.0f} s"}
        out["baseline"] = baseline
        if "used" in out:
            out["device"] = out["used"] - baseline
        return out


def work():
    """The other side of a Worker. What libraries print must not get between the answers."""
    import transformers

    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    print("ready", file=answers, flush=True)
    given = json.load(sys.stdin)
    early = torch.cuda.is_initialized()
    out = run_case(given["case"], given["models"], Device(given["device"]))
    out |= {"initializedEarly": early, "torch": torch.__version__, "transformers": transformers.__version__}
    json.dump(out, answers)
    answers.flush()
    os._exit(0)  # Without the libraries' own ends, which take seconds.


def main():
    if sys.argv[1:] == ["--worker"]:
        return work()
    parser = argparse.ArgumentParser()
    parser.add_argument("output")
    parser.add_argument("--only", default="")
    parser.add_argument("--limit", type=float, default=240)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--cases", default=os.path.join(HERE, "plan_device_cases.json"))
    arguments = parser.parse_args()
    started = time.monotonic()
    with open(arguments.cases) as file:
        given = json.load(file)
    with open(os.path.join(ROOT, "test/data/plan/models.json")) as file:
        models = {name: each["config"] for name, each in json.load(file).items()}
    models.update(given["models"])
    output = os.path.abspath(arguments.output)
    os.makedirs(output, exist_ok=True)
    device = Device(arguments.device)
    only = set(filter(None, arguments.only.split(",")))
    cases = [case for case in [{"id": "machine", "words": ""}, *given["cases"]] if not only or case["id"] in only]
    result = {"date": time.strftime("%Y-%m-%d"), "cases": []}
    workers = [Worker() for _ in cases[:WORKERS]]
    for index, case in enumerate(cases):
        left = arguments.limit - (time.monotonic() - started)
        if left < 5:
            out = {"id": case["id"], "error": "skipped: no time left"}
        else:
            own = {case["model"]: models[case["model"]]} if "model" in case else {}
            worker = workers.pop(0)
            if index + WORKERS < len(cases):
                workers.append(Worker())
            out = worker.measure({**case, "output": output}, own, device, min(case.get("limit", CASE_LIMIT_S), left))
        result["cases"].append(out)
        with open(os.path.join(output, "measured.json"), "w") as file:
            json.dump(result, file, indent=1)
        word = out.get("error") or out.get("outOfMemory") or f"allocated {out.get('allocated', 0) / 2**20:.0f} MiB"
        print(f"{time.monotonic() - started:6.1f} s  {out['id']} ({out.get('seconds', 0)} s): {word[:150]}", flush=True)
    for worker in workers:
        worker.process.kill()


main()
