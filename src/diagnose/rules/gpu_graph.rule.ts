import { adviceOf } from "../../gpu/analysis/advice.js";
import { formatBytesBriefly } from "../../model/base/numbers.js";
import type { GpuGrowthJson } from "../../model/documents/gpu/gpu_document.js";
import { ownFrame } from "../../model/documents/own_code.js";
import { snapshotDevices } from "../causes/devices.js";
import { frameText } from "../wording/words.js";
import { growingSites } from "./gpu_leak.rule.js";
import { type Rule, silent } from "./rule.js";

/** One kept output keeps the results of all earlier operations; one kept tensor is one site. */
const FEWEST_OPERATIONS = 2;
const MOST_OF_GROWTH = 0.5;
const TORCH_PASS = /[/\\]torch[/\\](?:nn[/\\]|autograd[/\\]|_tensor\.py|_functional)/;
const PASS = /^(?:forward|_call_impl|_wrapped_call_impl|backward|apply|run_backward)$/;

/** Results of several operations of one forward pass stay on the device after each step. */
export const gpuGraph: Rule = {
  name: "gpu-graph",
  judge(observations) {
    const devices = snapshotDevices(observations);
    if (devices.length === 0) {
      return null;
    }
    const growing = growingSites(devices);
    const all = growing.reduce((sum, { bytesPerStep }) => sum + bytesPerStep, 0);
    const ofPass = growing.filter(isOfPass);
    const operations = new Set(
      ofPass.map(({ stack }) => stack.map(({ file, line }) => `${file}:${line}`).join(" ")),
    );
    const slope = ofPass.reduce((sum, { bytesPerStep }) => sum + bytesPerStep, 0);
    if (operations.size < FEWEST_OPERATIONS || slope < MOST_OF_GROWTH * all) {
      return silent("No autograd graph accumulates on the device.");
    }
    return {
      says: "leak",
      about: "device",
      kind: "graph-retention",
      weight: 0.985,
      detail: `Results of ${operations.size} operations of one pass stay allocated, ${formatBytesBriefly(slope)} a step: a kept tensor keeps its autograd graph. Most are allocated by ${frameText(ownFrame(ofPass[0]?.stack ?? []))}.`,
      deviceSites: ofPass,
      advice: adviceOf(["TM-A106"]),
    };
  },
};

/** True within a module's forward or a backward pass, except for gradients, which belong to parameters. */
function isOfPass({ stack, category }: GpuGrowthJson): boolean {
  return (
    category !== "gradients" &&
    category !== "parameters" &&
    category !== "optimizer state" &&
    stack.some(({ function: name }) => PASS.test(name.split(".").at(-1) ?? "")) &&
    stack.some(({ file }) => TORCH_PASS.test(file))
  );
}
