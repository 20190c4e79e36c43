import { basename } from "node:path";
import { Command } from "commander";
import { analyseSnapshot, oomDocument, withSnapshotCheck } from "../../inspect/index.js";
import type { OomJson } from "../../model/documents/gpu/gpu_document.js";
import { badUsage } from "../../model/errors/errors.js";
import {
  type CommonOptions,
  type ListOptions,
  selectRows,
  withCommonOptions,
  withExamples,
  withListOptions,
} from "../options/options.js";
import { DEFAULT_OOM_EVENTS, oomText, printOom } from "../screens/gpu/oom.js";
import { printJson, screenOf } from "../text/output.js";
import { withProgress } from "../text/progress.js";

interface OomOptions extends CommonOptions, ListOptions {
  readonly snapshot?: string;
}

export function gpuOomCommand(): Command {
  const command = new Command("oom")
    .summary("explain the out-of-memory messages in a log")
    .description(
      "Finds the out-of-memory messages of PyTorch (CUDA, ROCm, XPU, MPS), NCCL, cuBLAS, vLLM, JAX, " +
        "TensorFlow and other programs in a log of any size (also one JSON object per line), and explains " +
        "each: genuine, fragmentation, contention or context, the " +
        "arithmetic, and the setting that fixes it.",
    )
    .argument("[log]", "the log, also .gz or UTF-16; standard input if omitted or -", "-")
    .option("--snapshot <file>", "an allocator snapshot to check against");
  withListOptions(command, "messages", DEFAULT_OOM_EVENTS);
  withCommonOptions(command, "stdout");
  return withExamples(
    command,
    "tidemark gpu oom train.log",
    "kubectl logs job/train | tidemark gpu oom",
    "tidemark gpu oom train.log --snapshot oom.pickle --json",
  ).action(oom);
}

async function oom(log: string, _: OomOptions, command: Command): Promise<void> {
  // An option that `gpu` also has is parsed by `gpu` if it precedes this subcommand's name.
  const options = command.optsWithGlobals<OomOptions>();
  if (log === "-" && process.stdin.isTTY === true) {
    throw badUsage("no log was given", "name a file, or pipe one in");
  }
  const document = await readLog(log, options);
  if (options.json === true) {
    const { rows } = selectRows(
      document.events,
      options,
      0,
      (event) => event.requestedBytes ?? 0,
      oomText,
    );
    printJson({ ...document, events: rows });
  } else {
    printOom(screenOf(process.stdout), document, options);
  }
}

async function readLog(log: string, options: OomOptions): Promise<OomJson> {
  const document = await withProgress(basename(log), "MiB", options, (onProgress) =>
    oomDocument(log, onProgress),
  );
  const path = options.snapshot;
  if (path === undefined) {
    return document;
  }
  const snapshot = await withProgress(basename(path), "MiB", options, (onProgress) =>
    analyseSnapshot(path, onProgress),
  );
  return withSnapshotCheck(document, snapshot);
}
