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

  it("reads version 0.6.3", () => {
    const log = `INFO 10-20 10:00:00 model_runner.py:1060] Loading model weights took 14.9888 GB
INFO 10-20 10:00:05 worker.py:268] Memory profiling results: total_gpu_memory=79.10GiB initial_memory_usage=15.42GiB peak_torch_memory=16.81GiB memory_usage_post_profile=15.55GiB non_torch_memory=0.44GiB kv_cache_size=53.94GiB gpu_memory_utilization=0.90
INFO 10-20 10:00:06 distributed_gpu_executor.py:57] # GPU blocks: 27617, # CPU blocks: 2048
INFO 10-20 10:00:06 distributed_gpu_executor.py:61] Maximum concurrency for 8192 tokens per request: 53.94x
INFO 10-20 10:00:20 model_runner.py:1523] Graph capturing finished in 14 secs.`;
    expect(readVllmLog(log)).toEqual({
      weightsBytes: 14.9888 * GIB,
      activationBytes: 16.81 * GIB - 14.9888 * GIB,
      otherBytes: 0.44 * GIB,
      cacheBytes: 53.94 * GIB,
      totalBytes: 79.1 * GIB,
      utilization: 0.9,
      cacheTokens: 27_617 * 16,
      blockTokens: 16,
      requestTokens: 8192,
      concurrency: 53.94,
    });
  });

  it("reads version 0.6.5, with a line for each figure", () => {
    const log = `INFO 12-13 19:55:25 worker.py:243] Memory profiling results:
INFO 12-13 19:55:25 worker.py:243] total_gpu_memory     79.22GiB
INFO 12-13 19:55:25 worker.py:243] gpu_memory_utilization       0.90
INFO 12-13 19:55:25 worker.py:243] model weights take   7.48GiB
INFO 12-13 19:55:25 worker.py:243] non_torch_memory     3.58GiB
INFO 12-13 19:55:25 worker.py:243] PyTorch activation peak memory       1.26GiB
INFO 12-13 19:55:25 worker.py:243] available_kv_cache_memory    58.97GiB`;
    expect(readVllmLog(log)).toEqual({
      weightsBytes: 7.48 * GIB,
      activationBytes: 1.26 * GIB,
      otherBytes: 3.58 * GIB,
      cacheBytes: 58.97 * GIB,
      totalBytes: 79.22 * GIB,
      utilization: 0.9,
    });
  });

  it("reads versions that print the cache only in blocks, and finds the size of a block", () => {
    const old = `INFO 07-17 23:41:16 model_runner.py:559] Loading model weights took 6.1138 GB
INFO 07-17 23:41:28 distributed_gpu_executor.py:56] # GPU blocks: 10039, # CPU blocks: 1310`;
    expect(readVllmLog(old)).toEqual({
      weightsBytes: 6.1138 * GIB,
      cacheTokens: 10_039 * 16,
      blockTokens: 16,
    });
    const named = `INFO 03-21 20:15:46 [executor_base.py:111] # cuda blocks: 7191, # CPU blocks: 512
INFO 03-21 20:15:46 [executor_base.py:116] Maximum concurrency for 4096 tokens per request: 56.18x`;
    expect(readVllmLog(named)).toMatchObject({ blockTokens: 32, cacheTokens: 7191 * 32 });
    expect(readVllmLog("kv_cache_utils.py:395] # GPU blocks: 1381")).toMatchObject({
      cacheTokens: 1381 * 16,
    });
  });

  it("reads version 0.11 and later, with the prefix of the engine's process", () => {
    const log = `(EngineCore_DP0 pid=212) INFO 10-06 12:00:20 [gpu_model_runner.py:2653] Model loading took 14.9889 GiB memory and 3.215131 seconds
(EngineCore_DP0 pid=212) INFO 10-06 12:00:30 [gpu_worker.py:298] Estimated CUDA graph memory: 0.55 GiB total
(EngineCore_DP0 pid=212) INFO 10-06 12:00:31 [gpu_worker.py:298] Available KV cache memory: 53.10 GiB
(EngineCore_DP0 pid=212) INFO 10-06 12:00:31 [kv_cache_utils.py:1087] GPU KV cache size: 434,992 tokens
(EngineCore_DP0 pid=212) INFO 10-06 12:00:31 [kv_cache_utils.py:1091] Maximum concurrency for 131,072 tokens per request: 3.32x`;
    expect(readVllmLog(log)).toEqual({
      weightsBytes: 14.9889 * GIB,
      cacheBytes: 53.1 * GIB,
      countsGraphs: true,
      graphBytes: 0.55 * GIB,
      cacheTokens: 434_992,
      requestTokens: 131_072,
      concurrency: 3.32,
    });
  });

  it("reads the profile at level DEBUG", () => {
    const log =
      "DEBUG 07-01 [gpu_worker.py:263] Memory profiling takes 9.81 seconds. Total non KV cache memory: 16.31GiB; torch peak memory increase: 1.26GiB; non-torch forward increase memory: 0.06GiB; weights memory: 14.99GiB.";
    expect(readVllmLog(log)).toEqual({
      weightsBytes: 14.99 * GIB,
      activationBytes: 1.26 * GIB,
      otherBytes: 0.06 * GIB,
    });
  });

  it("reads why vLLM did not start", () => {
    const log = `ValueError: To serve at least one request with the models's max seq len (32768), (4.50 GiB KV cache is needed, which is larger than the available KV cache memory (4.47 GiB). Based on the available memory, the estimated maximum model length is 32560.`;
    expect(readVllmLog(log)).toEqual({
      cacheBytes: 4.47 * GIB,
      neededBytes: 4.5 * GIB,
      requestTokens: 32_768,
    });
    expect(readVllmLog("Available KV cache memory: -0.41 GiB")).toEqual({
      cacheBytes: -0.41 * GIB,
    });
  });

  it("finds nothing in another log", () => {
    expect(readVllmLog("Starting server\nGET / 200")).toEqual({});
  });
});
