import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { planOptions } from "../defaults.js";
import type { TrainOptions } from "../job/options.js";
import { readShape } from "../shape/read_shape.js";
import { trainingPeak } from "../train/plan_training.js";

/** Adapter parameters that PEFT 0.21 adds to the models of test/data/plan/library, with rank 8. */
const CASES: readonly [model: string, targets: string, parameters: number][] = [
  ["bert", "dense", 77_824],
  ["bert", "query,dense", 90_112],
  ["electra", "dense", 30_720],
  ["distilbert", "q_lin,out_lin,lin1", 55_296],
  ["deberta-v2", "dense", 31_232],
  ["modernbert", "Wqkv,Wo", 29_952],
  ["gpt_neox", "dense", 12_288],
  ["falcon", "dense,query_key_value", 26_112],
  ["whisper", "q_proj,v_proj", 36_864],
  ["bart", "q_proj,out_proj", 49_152],
  ["t5", "q,v", 49_152],
  ["clip", "q_proj,out_proj", 20_480],
  ["unet_sd", "to_q,to_v,to_out.0", 317_952],
  ["sd35", "to_q,add_q_proj,to_out.0", 49_152],
  ["pixart", "to_k,ff.net.0.proj", 55_296],
];

it.each(CASES)("%s with adapters on %s has the parameters that PEFT adds", (name, targets, own) => {
  const file = new URL(`../../../test/data/plan/library/${name}.json`, import.meta.url);
  const model = readShape(JSON.parse(readFileSync(file, "utf8")), name, name);
  const train = { adapterTargets: targets.split(",") };
  const options = planOptions(model, { mode: "train", method: "lora", train }) as TrainOptions;
  expect(trainingPeak(model, options).states.counts.trainable).toBe(own);
});
