/** `--check` of logs whose caches have groups of layers. */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { planMemory } from "../plan.js";
import { readVllmLog } from "../serve/vllm_log.js";
import { readShape } from "../shape/read_shape.js";
import { comparedWords } from "../wording.js";
import { requestOf } from "../words.js";
import { compareVllm } from "./compare.js";

const MODELS = JSON.parse(
  readFileSync(
    fileURLToPath(new URL("../../../test/data/plan/models.json", import.meta.url)),
    "utf8",
  ),
);
const GEMMA = readShape(MODELS["gemma3-1b"].config, "gemma3-1b", "config.json");

/** vLLM 0.13, class LLM on a device below 70 GiB. */
const LOG = `[gpu_model_runner.py:3659] Model loading took 1.9148 GiB memory and 1.283947 seconds
[gpu_worker.py:375] Available KV cache memory: 25.39 GiB
[kv_cache_utils.py:1291] GPU KV cache size: 950,864 tokens
[kv_cache_utils.py:1296] Maximum concurrency for 2,048 tokens per request: 461.21x`;

const explained = (log: string, batchedTokens = 8192): string | undefined =>
  compareVllm(
    planMemory(GEMMA, requestOf({ serve: true, engine: "vllm", batchedTokens })),
    readVllmLog(log),
    "vllm.log",
  )?.explanation;

test("tokens of a model with windows are those of its groups, and so is the concurrency", () => {
  expect(explained(LOG)).toMatch(/28671 B of cache per token, as planned: vLLM has 7 groups/);
  expect(explained(LOG)).toContain("maximum concurrency 461.21x for 2,048 tokens, as the plan has");
});

test("newer versions count the tokens of as many requests", () => {
  const newer = LOG.replace("950,864", Math.floor(461.21 * 2048).toLocaleString("en"));
  expect(explained(newer)).toMatch(/as planned: vLLM has 7 groups/);
  const alone = newer.replace(/.*Available.*\n/, "");
  const plan = planMemory(GEMMA, requestOf({ serve: true, engine: "vllm", batchedTokens: 8192 }));
  const { measuredBytes = 0 } = compareVllm(plan, readVllmLog(alone), "vllm.log") ?? {};
  expect(Math.abs(measuredBytes / (25.39 * 2 ** 30) - 1)).toBeLessThan(0.001);
});

/**
 * By hand, for 8,192 tokens per pass: one group of full attention and six with windows of 512, which share the log's blocks of
 * 16 tokens. The same rule gives the log's own figure, from which the others follow.
 */
function concurrencyByHand(tokens: number): string {
  const blocks = (950_864 / 16) * 7;
  const windowed = Math.ceil(Math.min(511 + 8192, tokens) / 16) + 1;
  return (blocks / (Math.ceil(tokens / 16) + 6 * windowed)).toFixed(2);
}

test("another number of tokens per pass is named", () => {
  expect(concurrencyByHand(2048)).toBe("461.20");
  const times = concurrencyByHand(32768);
  const long = LOG.replace("2,048", "32,768").replace("461.21", times);
  expect(explained(long)).toContain(
    `maximum concurrency ${times}x for 32,768 tokens, as the plan has`,
  );
  expect(explained(long, 2048)).toContain(
    `maximum concurrency for 32,768 tokens is ${times}x, that of the plan`,
  );
  expect(explained(long, 2048)).toContain("a different --batched-tokens (the plan has 2048)");
});

test.each([
  [1.012, /the log rounds its figures, or has the memory of one rank and the tokens of another/],
  [0.975, /the log rounds its figures/],
  [0.5, /a different --kv-dtype or --tp/],
  [1.1, /a different --kv-dtype or --tp/],
])("%f times the planned bytes of a token", (times, words) => {
  const model = readShape(MODELS["llama-3.1-8b"].config, "llama", "config.json");
  const plan = planMemory(model, requestOf({ serve: true, engine: "vllm" }));
  const tokens = Math.round((40 * 2 ** 30) / (131_072 * times)).toLocaleString("en");
  const log = `Available KV cache memory: 40.00 GiB\nGPU KV cache size: ${tokens} tokens`;
  const { explanation } = compareVllm(plan, readVllmLog(log), "vllm.log") ?? {};
  expect(explanation).toMatch(words);
});

test("a log of a version before 0.21 does not count CUDA graphs, which the plan does", () => {
  const words =
    /does not mention that vLLM took CUDA graphs out of its share, which is the default since 0\.21/;
  expect(explained(LOG)).toMatch(words);
  expect(explained(`${LOG}\nEstimated CUDA graph memory: 0.55 GiB total`)).not.toMatch(words);
  const newest = "CUDA graph memory profiling is enabled (default since v0.21.0).";
  expect(explained(`${LOG}\n${newest}`)).not.toMatch(words);
});

test.each([
  ["Available KV cache memory: -2.54 GiB", -2.54],
  ["ValueError: No available memory for the cache blocks. Try increasing it.", 0],
])("a start that left no cache is outside the interval: %s", (line, gib) => {
  const plan = planMemory(GEMMA, requestOf({ serve: true, engine: "vllm" }));
  const log = readVllmLog(`Model loading took 1.9148 GiB\n${line}`);
  const compared = compareVllm(plan, log, "vllm.log");
  expect(compared).toMatchObject({ kind: "KV cache", within: false });
  expect(compared?.measuredBytes).toBe(Math.round(gib * 2 ** 30));
  expect(compared?.explanation).toMatch(/^vLLM had no memory left for its cache/);
  const words = comparedWords(compared as NonNullable<typeof compared>);
  expect(words).toMatch(/ GiB above the measurement, outside the interval$/);
});
