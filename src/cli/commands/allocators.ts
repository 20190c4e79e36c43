import { Command, InvalidArgumentError } from "commander";
import { ALLOCATOR_NAMES, chooseProgram, compareAllocators } from "../../allocators/index.js";
import type { AllocatorName } from "../../model/documents/allocators_document.js";
import type { CommandAbout } from "../options/about.js";
import { withInterrupt } from "../options/interrupt.js";
import {
  type CommonOptions,
  parseCount,
  withCommonOptions,
  withExamples,
} from "../options/options.js";
import { withProgram } from "../options/program_words.js";
import { requireLinux } from "../options/requirements.js";
import { printAllocators } from "../screens/allocators.js";
import { printJson, printNote, screenOf } from "../text/output.js";
import { withProgress } from "../text/progress.js";

/** The settings that are compared with glibc, the first one. */
const COMPARED = ALLOCATOR_NAMES.slice(1);

interface AllocatorsOptions extends CommonOptions {
  readonly rounds?: number;
  readonly only?: readonly AllocatorName[];
  readonly python?: string;
}

export const about: CommandAbout = {
  group: "record",
  summary: "compare a program's memory under other allocators",
  rows: "none",
};

export function buildCommand(): Command {
  const command = new Command("allocators")
    .description(
      "Run a program repeatedly, under glibc and under each other allocator or setting, and compare its\n" +
        "memory and CPU time. Its stdout is discarded. The program must end by itself with exit code 0.",
    )
    .option(
      "--rounds <n>",
      "runs of each setting, at least 2 (default: 5, then up to 15 of those that are undecided)",
      parseRounds,
    )
    .option("--only <names>", `compare only these with glibc: ${COMPARED.join(", ")}`, parseNames);
  withProgram(command);
  withCommonOptions(command, "stdout");
  return withExamples(
    command,
    "tidemark allocators -- python load_test.py",
    "tidemark allocators --only jemalloc,arenas --rounds 10 load_test.py",
    "tidemark allocators --json -m pytest tests/test_memory.py > allocators.json",
    "tidemark run --allocator jemalloc app.py",
  ).action(allocators);
}

async function allocators(words: string[], options: AllocatorsOptions): Promise<void> {
  requireLinux();
  const { command, note } = chooseProgram(words, options.python, { tool: "allocators" });
  if (note !== null && options.quiet !== true) {
    printNote(note);
  }
  const { rounds = null, only = null } = options;
  const document = await withInterrupt((until) =>
    withProgress("allocators", "runs", options, (onProgress) =>
      compareAllocators({ command, rounds, only, until }, onProgress),
    ),
  );
  if (options.json === true) {
    printJson(document);
  } else {
    printAllocators(screenOf(process.stdout), document);
  }
}

function parseRounds(text: string): number {
  const rounds = parseCount(text);
  if (rounds < 2 || rounds > 1000) {
    throw new InvalidArgumentError("a whole number from 2 to 1000");
  }
  return rounds;
}

function parseNames(text: string): AllocatorName[] {
  return text.split(",").map((word) => {
    const name = COMPARED.find((known) => known === word.trim());
    if (name === undefined) {
      throw new InvalidArgumentError(`a list of ${COMPARED.join(", ")}, separated by commas`);
    }
    return name;
  });
}
