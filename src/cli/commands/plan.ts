import { Command, Option } from "commander";
import {
  isSnapshot,
  openRecordingAt,
  type Planned,
  planComparedWithLog,
  planComparedWithRecording,
  planComparedWithSnapshot,
  planDocument,
  planPage,
  planWithFitTable,
} from "../../inspect/index.js";
import type { PlanJson } from "../../model/documents/plan_document.js";
import { badUsage, TidemarkError } from "../../model/errors/errors.js";
import { ownKind } from "../files/own_files.js";
import { writeReport } from "../files/report_page.js";
import { requireOtherFile, writeWhole } from "../files/write_whole.js";
import { sayWritten } from "../files/written_files.js";
import type { CommandAbout } from "../options/about.js";
import {
  type CommonOptions,
  withCommonOptions,
  withExamples,
  withForceOption,
} from "../options/options.js";
import { type PlanWords, requestOf, withPlanOptions } from "../options/plan_options.js";
import { printPlan } from "../screens/plan.js";
import { printJson, screenOf } from "../text/output.js";
import { withProgress } from "../text/progress.js";

interface PlanCommandOptions extends PlanWords, CommonOptions {
  readonly fit?: boolean;
  readonly config?: readonly string[];
  readonly compare?: string;
  readonly check?: string;
  readonly failOn?: FailOn;
  readonly output?: string;
  readonly force?: boolean;
}

export const about: CommandAbout = {
  group: "devices",
  summary: "plan the memory that training or serving a model takes",
  rows: "none",
};

export function buildCommand(): Command {
  const command = new Command("plan")
    .description(
      "How much device memory training or serving a model takes, each part with its formula, and what each\n" +
        "technique would save. MODEL is a folder with config.json (and weight files, whose headers are\n" +
        "read), or one file: .json, .safetensors, .gguf. Nothing is downloaded.",
    )
    .argument("<model>", "folder with config.json, or one file");
  withPlanOptions(command);
  command
    .option(
      "--config <file>",
      "adapter_config.json, or a configuration of DeepSpeed or accelerate; may be repeated; other options take precedence",
      (file: string, files: readonly string[] = []) => [...files, file],
    )
    .option("--fit", "list the methods, batches and lengths that fit on --gpu, or on common GPUs")
    .option("--compare <file>", "compare the plan with an allocator snapshot or a recording")
    .option("--check <log>", "with --serve: compare the plan with a start-up log of vLLM")
    .addOption(
      new Option(
        "--fail-on <fit>",
        "exit code 1 if the plan does not fit (over), or if its interval reaches beyond the device, too (unsure)",
      ).choices(["over", "unsure"]),
    )
    .option(
      "-o, --output <file>",
      "write a self-contained HTML page that recomputes plans, instead of printing the plan;\nwith --json: print the name of the file",
    );
  withForceOption(command);
  withCommonOptions(command, "stdout");
  return withExamples(
    command,
    "tidemark plan ./model --train --method qlora --batch 1 --seq 4096 --gpu 4090",
    "tidemark plan ./model --train --fsdp 8 --batch 2 --seq 8192 --checkpointing selective",
    "tidemark plan ./model --serve --engine vllm --context 32k --concurrency 64 --gpu h100 --tp 2",
    "tidemark plan ./model --train --config ds_config.json --devices 8",
    "tidemark plan ./model --fit --gpu 24GiB",
    "tidemark plan ./model --train --gpu 4090 --quiet --fail-on over",
    "tidemark plan ./model --train --compare snapshot.pickle",
    "tidemark plan ./model -o plan.html",
  ).action(plan);
}

async function plan(path: string, options: PlanCommandOptions): Promise<void> {
  const { output } = options;
  if (options.compare !== undefined && options.check !== undefined) {
    throw badUsage("--compare and --check cannot be combined", "choose one");
  }
  if (options.check !== undefined && (options.serve !== true || options.engine !== "vllm")) {
    throw badUsage("--check reads the log of vLLM", "add --serve --engine vllm");
  }
  const planned = planDocument(path, requestOf(options), {
    configs: options.config ?? [],
  });
  const fitted =
    options.fit === true
      ? await withProgress(path, "rows", options, (onProgress) =>
          planWithFitTable(planned, onProgress),
        )
      : planned.plan;
  const document = await compared(fitted, options);
  if (output !== undefined) {
    await writePage(path, { ...planned, plan: document }, output, options);
  } else if (options.json === true) {
    printJson(document);
  } else {
    printPlan(screenOf(process.stdout), document, options.quiet === true);
  }
  if (options.failOn !== undefined && isOver(document, options.failOn)) {
    process.exitCode = 1;
  }
}

type FailOn = "over" | "unsure";

function isOver({ fits, memory }: PlanJson, failOn: FailOn): boolean {
  return !fits.fits || (failOn === "unsure" && memory.device.high > fits.deviceBytes);
}

async function compared(document: PlanJson, options: PlanCommandOptions): Promise<PlanJson> {
  const { compare, check } = options;
  if (check !== undefined) {
    return planComparedWithLog(document, check);
  }
  if (compare === undefined) {
    return document;
  }
  return isSnapshot(compare)
    ? withProgress(compare, "MiB", options, (onProgress) =>
        planComparedWithSnapshot(document, compare, onProgress),
      )
    : planComparedWithRecording(document, comparedRecording(compare), compare);
}

/** A file that is neither: both kinds are named. */
function comparedRecording(path: string): ReturnType<typeof openRecordingAt> {
  try {
    return openRecordingAt(path);
  } catch (error) {
    throw error instanceof TidemarkError && error.id === "TM-E007"
      ? new TidemarkError(
          "TM-E007",
          2,
          error.what,
          "",
          "give a recording of tidemark run --gpu, or a snapshot of PyTorch's allocator (torch.cuda.memory._dump_snapshot)",
        )
      : error;
  }
}

async function writePage(
  path: string,
  planned: Planned,
  output: string,
  options: PlanCommandOptions,
): Promise<void> {
  requireOtherFile(output, path);
  await writeWhole(output, { force: options.force, isOwn: ownKind("page") }, (file) =>
    withProgress(output, "MiB", options, (onProgress) =>
      writeReport(planPage(planned), file, onProgress),
    ),
  );
  sayWritten("html", [output], options);
}
