import { Command } from "commander";
import type { PlanJson } from "../../model/documents/plan_document.js";
import { planMemory, planOptions, readModel } from "../../plan/index.js";
import type { CommandAbout } from "../options/about.js";
import { type CommonOptions, withCommonOptions, withExamples } from "../options/options.js";
import { type PlanWords, requestOf, withPlanOptions } from "../options/plan_options.js";
import { printPlan } from "../screens/plan.js";
import { printJson, screenOf } from "../text/output.js";

export const about: CommandAbout = {
  group: "devices",
  summary: "plan the memory that training or serving a model takes",
  rows: "none",
};

export function buildCommand(): Command {
  const command = new Command("plan")
    .description(
      "How much device memory training or serving a model takes, part by part with its formula, and what\n" +
        "each technique would save. MODEL is a folder with config.json, or such a file; nothing is downloaded.",
    )
    .argument("<model>", "folder with config.json, or the file");
  withPlanOptions(command);
  withCommonOptions(command, "stdout");
  return withExamples(
    command,
    "tidemark plan ./model --train --method qlora --batch 1 --seq 4096 --gpu 4090",
    "tidemark plan ./model --train --fsdp 8 --batch 2 --seq 8192 --checkpointing selective",
    "tidemark plan ./model --serve --engine vllm --context 32k --concurrency 64 --gpu h100 --tp 2",
    "tidemark plan ./model --json",
  ).action(plan);
}

function plan(path: string, options: PlanWords & CommonOptions): void {
  const model = readModel(path);
  const document: PlanJson = planMemory(model, planOptions(model, requestOf(options)));
  if (options.json === true) {
    printJson(document);
  } else {
    printPlan(screenOf(process.stdout), document, options.quiet === true);
  }
}
