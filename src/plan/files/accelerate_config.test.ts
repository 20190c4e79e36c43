/** Configurations of accelerate and DeepSpeed as their documentation has them: every division that they name is planned. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import type { PlanRequest } from "../defaults.js";
import { withJobConfigs } from "./job_config.js";

const folder = mkdtempSync(join(tmpdir(), "tidemark-"));
afterAll(() => rmSync(folder, { recursive: true }));

function requestOf(text: string, name = "config.yaml"): PlanRequest {
  const path = join(folder, name);
  writeFileSync(path, text);
  return withJobConfigs({ mode: "train" }, [path]);
}

test("Megatron-LM's tensors, stages and microbatches", () => {
  const megatron = `distributed_type: MEGATRON_LM
megatron_lm_config:
  megatron_lm_num_micro_batches: 4
  megatron_lm_pp_degree: 2
  megatron_lm_recompute_activations: true
  megatron_lm_sequence_parallelism: true
  megatron_lm_tp_degree: 2
  megatron_lm_use_distributed_optimizer: true
num_processes: 8
mixed_precision: bf16
`;
  expect(requestOf(megatron)).toMatchObject({
    tensor: 2,
    pipeline: 2,
    sequenceParallel: true,
    sharding: { kind: "zero-1", devices: 2 },
    train: { accumulation: 4, checkpointing: "selective" },
  });
  expect(() => requestOf(megatron.replace("num_processes: 8", "num_processes: 6"))).toThrow(
    /its 6 processes are not a multiple of 4/,
  );
});

test("the mesh of parallelism_config", () => {
  const request = requestOf(`distributed_type: FSDP
fsdp_config:
  fsdp_version: 2
  fsdp_reshard_after_forward: true
parallelism_config:
  parallelism_config_dp_replicate_size: 2
  parallelism_config_dp_shard_size: 2
  parallelism_config_tp_size: 2
  parallelism_config_cp_size: 2
num_processes: 16
`);
  expect(request).toMatchObject({
    tensor: 2,
    contextParallel: 2,
    sharding: { kind: "fsdp", devices: 2, version: 2 },
  });
  expect(request.notes?.join()).toMatch(/one of 2 copies.*2 devices of context parallelism, too/);
});

test("HYBRID_SHARD divides over one machine", () => {
  const request = requestOf(`distributed_type: FSDP
fsdp_config:
  fsdp_sharding_strategy: HYBRID_SHARD
num_machines: 4
num_processes: 32
`);
  expect(request.sharding).toMatchObject({ kind: "fsdp", devices: 8 });
  expect(request.notes?.join()).toMatch(/over 8 of 32 devices: the plan is of one of 4 copies/);
});

test("a type that accelerate does not have is refused", () => {
  expect(() => requestOf("distributed_type: FSDP3\nnum_processes: 2\n")).toThrow(
    /accelerate has no distributed_type "FSDP3"/,
  );
});

test("what DeepSpeed's configuration names and the plan does not read is a caution", () => {
  const request = requestOf(
    JSON.stringify({
      optimizer: { type: "OneBitAdam", params: { freeze_step: 400 } },
      zero_optimization: true,
      activation_checkpointing: { cpu_checkpointing: true },
    }),
    "ds.json",
  );
  expect(request.sharding).toMatchObject({ kind: "zero-1" });
  expect(request.notes?.join()).toMatch(/optimizer OneBitAdam, of which the plan has no formula/);
  expect(request.notes?.join()).toMatch(/sets cpu_checkpointing, on which no figure/);
});
