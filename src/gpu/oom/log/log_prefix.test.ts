/** What stands before a program's own line, and what of it is a rank. */
import { expect, test } from "vitest";
import { splitPrefix } from "./log_prefix.js";

test.each([
  ["[rank3]: ", 3],
  ["[rank3]:[E614 12:00:00.1 ProcessGroupNCCL.cpp:616] ", 3],
  ["2025-01-01T00:00:00Z [rank3]: ", 3],
  ["2025-08-14T10:00:00.123456789Z stderr F [rank3]: ", 3],
  ["worker-0: [rank3]: ", 3],
  ["10.0.0.5: [rank3]: ", 3],
  ["(VllmWorker rank=3 pid=1090) ", 3],
  ["(Worker_TP3 pid=1090) ", 3],
  ["(EngineCore_DP3 pid=99) ", 3],
  ["(Worker_DP1_TP3_EP7 pid=1090) ", null],
  ["(RayTrainWorker pid=991, ip=10.0.0.3) ", null],
  ["[2025-07-07 19:00:30 TP3] ", 3],
  ["[2025-07-07 19:00:30 DP4 TP4] ", null],
  ["[RANK 3] ", 3],
  ["trainer-3  | ", 3],
  ["job-worker-3 | ", 3],
  ["vllm-1  | ", null],
  ["text_generation_inference-1  | ", null],
  ["[pod/server-7f9c/main] ", null],
])("%s", (prefix, rank) => {
  expect(splitPrefix(`${prefix}RuntimeError: out`)).toMatchObject({
    rank,
    text: "RuntimeError: out",
  });
});

test("a time alone does not identify a writer; two workers are distinguished", () => {
  const writer = (line: string) => splitPrefix(line).writer;
  expect(writer("2025-01-01T00:00:01Z a")).toBe("");
  expect(writer("[2025-07-07 19:00:30 DP4 TP4] a")).toBe(writer("[2025-07-07 19:00:31 DP4 TP4] b"));
  expect(writer("(Worker_DP1_TP3 pid=1) a")).not.toBe(writer("(Worker_DP1_TP2 pid=2) a"));
  expect(splitPrefix("2022-02-11 12:56:42.8: I tensorflow/core/a.cc").text).toMatch(/^2022/);
});
