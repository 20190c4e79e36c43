import { Command } from "commander";
import type { WrittenJson } from "../../model/documents.js";
import { importPool } from "../../record/index.js";
import { type CommonOptions, withCommonOptions, withExamples } from "../options.js";
import { formatBytes, printJson, screenOf } from "../output.js";
import { sizeOfFile } from "../recordings.js";
import { requireOtherFile, writeWhole } from "../write_whole.js";

interface ImportOptions extends CommonOptions {
  readonly output?: string;
}

export function buildCommand(): Command {
  const command = new Command("import")
    .description(
      "Make a recording of a pool file: what the agent leaves where the environment switched it on\n" +
        "(LD_PRELOAD=.../libtidemark.so TIDEMARK=dir=DIR), while its process runs or after.",
    )
    .argument("<file>", "a tidemark-PID.pool file")
    .option("-o, --output <file>", "the recording (default: the file's name with .tidemark)");
  withCommonOptions(command, "stdout");
  return withExamples(
    command,
    "tidemark import /var/lib/profiles/tidemark-4242.pool -o app.tidemark",
    "tidemark summary app.tidemark",
  ).action(importFile);
}

async function importFile(path: string, options: ImportOptions): Promise<void> {
  const output = options.output ?? `${path.replace(/\.pool$/, "")}.tidemark`;
  requireOtherFile(output, path);
  await writeWhole(output, async (file) => importPool(path, file));
  const written: WrittenJson = {
    schema: "tidemark.written/1",
    format: "tidemark",
    files: [{ file: output, bytes: sizeOfFile(output) }],
  };
  if (options.json === true) {
    printJson(written);
  } else if (options.quiet !== true) {
    const screen = screenOf(process.stdout);
    screen.line(`${output} ${screen.paint.dim(`(${formatBytes(sizeOfFile(output))})`)}`);
  }
}
