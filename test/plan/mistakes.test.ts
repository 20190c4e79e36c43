/** What `tidemark plan` refuses: each mistake gives one line. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { execute, removeScratch, repository, scratch, tidemark } from "../run.js";

const MODELS = JSON.parse(
  readFileSync(join(repository, "test/data/plan/models.json"), "utf8"),
) as Record<string, { config: object }>;
let folder: string;

beforeAll(() => {
  folder = scratch();
  mkdirSync(join(folder, "no-model"));
  mkdirSync(join(folder, "adapter"));
  writeFileSync(
    join(folder, "adapter", "adapter_config.json"),
    '{"peft_type": "LORA", "base_model_name_or_path": "org/base", "r": 8}',
  );
  writeFileSync(join(folder, "zero.json"), '{"zero_optimization": {"stage": 3}}');
  writeFileSync(join(folder, "accelerate.yaml"), "distributed_type: FSDP\n");
  writeFileSync(join(folder, "aura.json"), '{"_class_name": "AuraFlowTransformer2DModel"}');
  for (const [name, { config }] of Object.entries(MODELS)) {
    mkdirSync(join(folder, name));
    writeFileSync(join(folder, name, "config.json"), JSON.stringify(config));
  }
});
afterAll(removeScratch);

const plan = (...words: string[]) => execute([tidemark, "plan", ...words], { cwd: folder });

describe("a mistake gives one line", () => {
  test.each([
    [["nowhere"], /TM-E003 no such model folder or file: nowhere;/],
    [
      ["llama-3.1-8b", "--serve", "--engine", "vllm", "--check", "no.log"],
      /TM-E003 no such file: no\.log;/,
    ],
    [["gpt2", "--config", "no.json"], /TM-E003 no such file: no\.json;/],
    [
      ["mixtral", "--serve", "--ep", "3"],
      /TM-E086 8 experts cannot be divided evenly over --ep 3; use --ep 2, 4 or 8/,
    ],
    [
      ["meta-llama/Llama-3.1-8B"],
      /TM-E003 no such model [^\n]*not downloaded; [^\n]*hf download meta-llama\/Llama-3\.1-8B config\.json --local-dir Llama-3\.1-8B/,
    ],
    [
      ["./Llama-3.1-8B"],
      /TM-E003 no such model folder or file: \.\/Llama-3\.1-8B; the name may be/,
    ],
    [
      ["adapter"],
      /TM-E085 adapter\/adapter_config\.json .* adapter of org\/base; .* with --config/,
    ],
    [
      ["adapter/adapter_config.json"],
      /TM-E085 .* it configures an adapter of org\/base; .* --config/,
    ],
    [["zero.json"], /TM-E085 zero\.json .* it configures DeepSpeed; .* with --config/],
    [["accelerate.yaml"], /TM-E085 accelerate\.yaml .* it is not JSON; accelerate's .* --config/],
    [["no-model"], /TM-E085 .*holds no config\.json; it is another folder, or its download is/],
    [["/dev/null"], /TM-E085 .*not a regular file/],
    [["gpt2", "--train", "--serve"], /TM-E002 --train and --serve/],
    [["gpt2", "--serve", "--batch", "2"], /TM-E002 --batch belongs to training; use --concurrency/],
    [["gpt2", "--context", "2k"], /TM-E002 --context belongs to --serve/],
    [["gpt2", "--gpu", "h1000"], /a GPU such as h100/],
    [["gpt2", "--gpu", "gb200"], /24GiB \(did you mean B200\?\), not 'gb200'/],
    [
      ["gpt2", "--seq", "1000000000"],
      /a whole number from 1 to 128m, such as 8 or 32k, not '1000000000'/,
    ],
    [["gpt2", "--workers", "129m"], /a whole number from 0 to 128m, such as 0 or 8, not '129m'/],
    [
      ["gpt2", "--cuda-context", "480"],
      /--cuda-context takes a size of 1 MiB or more, such as 480MiB, not '480'/,
    ],
    [["gpt2", "--gpu", "h10"], /24GiB \(names that begin so: H100-80GB, H100-96GB\), not 'h10'/],
    [["gpt2", "--gpu", "rtx"], /24GiB \(names that begin so: RTX 3060, RTX 3090,/],
    [["gpt2", "--gpu", "40"], /24GiB \(names that begin so: RTX 4070, RTX 4080, RTX 4090\)/],
    [["gpt2", "--gpu", "16"], /a GPU such as h100 or 4090, or a size such as 24GiB/],
    [["gpt2", "--method", "qlorra"], /--method takes one of full, lora, qlora/],
    [["gpt2", "--quantize", "nf4", "--method", "full"], /quantized weights cannot be trained/],
    [
      ["gpt2", "--optimizer-in-backward", "--accumulation", "4"],
      /TM-E002 --optimizer-in-backward cannot accumulate gradients/,
    ],
    [["gpt2", "--fsdp", "2", "--ddp", "2"], /divide the same job twice/],
    [["gpt2", "--ep", "2"], /TM-E086 the model has no experts to divide; leave --ep out/],
    [
      ["gpt2", "--method", "lora", "--lora-targets", "nonsense"],
      /TM-E002 no layer of the model is named nonsense; --lora-targets takes attention, all, or some of qkv_proj, o_proj/,
    ],
    [["gpt2", "--no-cuda-graphs"], /--no-cuda-graphs belongs to --serve/],
    [["gpt2", "--serve", "--lora-rank", "8"], /--lora-rank belongs to training/],
    [
      ["gpt2", "--serve", "--check", "x.log"],
      /--check reads the log of vLLM; add --serve --engine vllm/,
    ],
    [
      ["aura.json"],
      /TM-E085 .*has no reader.*; of diffusers, UNet2DModel, .* SD3 and Flux are read; put/,
    ],
    [["gpt2", "--tp", "5"], /TM-E086 12 heads cannot be divided over --tp 5/],
    [["gpt2", "--batch", "0"], /a whole number from 1/],
    [["gpt2", "--check", "x.log"], /add --serve/],
    [["gpt2", "--compare", "nowhere.pickle"], /TM-E003/],
    [["gpt2", "--compare", "gpt2/config.json"], /TM-E007 .*snapshot of PyTorch's allocator/],
  ])("%j", async (words, message) => {
    const { status, stdout, stderr } = await plan(...words);
    expect([status, stdout]).toEqual([2, ""]);
    expect(stderr).toMatch(message);
    expect(stderr.trimEnd().split("\n"), stderr).toHaveLength(1);
  });

  test.each([
    ["cut", '{"hidden_size": 12'],
    ["list", "[1, 2]"],
    ["empty", ""],
    ["binary", "\0\x01\x02"],
    ["nested", `${'{"text_config":'.repeat(50_000)}1${"}".repeat(50_000)}`],
  ])("a %s config.json", async (name, text) => {
    mkdirSync(join(folder, `bad-${name}`));
    writeFileSync(join(folder, `bad-${name}`, "config.json"), text);
    const { status, stderr } = await plan(`bad-${name}`);
    expect(status).toBe(2);
    expect(stderr).toMatch(/^tidemark: TM-E\d{3} [^\n]+\n$/);
  });
});
