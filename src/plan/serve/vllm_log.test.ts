import { describe, expect, it } from "vitest";
import { readVllmLog } from "./vllm_log.js";

const GIB = 2 ** 30;

describe("readVllmLog", () => {
  it("reads the wording of version 1's engine", () => {
    const log = `
INFO 07-01 10:00:00 [gpu_model_runner.py:1801] Model loading took 14.9889 GiB and 5.31 seconds
INFO 07-01 10:00:30 [gpu_worker.py:232] Available KV cache memory: 54.88 GiB
INFO 07-01 10:00:30 [kv_cache_utils.py:716] GPU KV cache size: 449,552 tokens
INFO 07-01 10:00:30 [kv_cache_utils.py:720] Maximum concurrency for 131,072 tokens per request: 3.43x
INFO 07-01 10:00:50 [gpu_model_runner.py:2326] Graph capturing finished in 20 secs, took 0.53 GiB`;
    expect(readVllmLog(log)).toEqual({
      weightsBytes: 14.9889 * GIB,
      cacheBytes: 54.88 * GIB,
      graphBytes: 0.53 * GIB,
      cacheTokens: 449_552,
      requestTokens: 131_072,
      concurrency: 3.43,
    });
  });

  it("reads the older wording", () => {
    const log = `the current vLLM instance can use total_gpu_memory (22.17GiB) x gpu_memory_utilization (0.90) = 19.95GiB
model weights take 14.99GiB; non_torch_memory takes 0.06GiB; PyTorch activation peak memory takes 1.26GiB; the rest of the memory reserved for KV Cache is 3.64GiB.
# GPU blocks: 1864, # CPU blocks: 2048`;
    expect(readVllmLog(log)).toEqual({
      weightsBytes: 14.99 * GIB,
      activationBytes: 1.26 * GIB,
      otherBytes: 0.06 * GIB,
      cacheBytes: 3.64 * GIB,
      totalBytes: 22.17 * GIB,
      utilization: 0.9,
      cacheTokens: 1864 * 16,
      blockTokens: 16,
    });
  });

  it("finds nothing in another log", () => {
    expect(readVllmLog("Starting server\nGET / 200")).toEqual({});
  });
});
