import { formatBytes } from "../../model/base/numbers.js";
import type { WrittenJson } from "../../model/documents/documents.js";
import type { CommonOptions } from "../options/options.js";
import { printJson, screenOf } from "../text/output.js";
import { sizeOfFile } from "./recordings.js";

/** Reports which files a command has written and their sizes, as text or as `tidemark.written/1`. */
export function sayWritten(format: string, paths: readonly string[], options: CommonOptions): void {
  const files = paths.map((file) => ({ file, bytes: sizeOfFile(file) }));
  if (options.json === true) {
    printJson({ schema: "tidemark.written/1", format, files } satisfies WrittenJson);
  } else if (options.quiet !== true) {
    const screen = screenOf(process.stdout);
    for (const { file, bytes } of files) {
      screen.line(`${file} ${screen.paint.dim(`(${formatBytes(bytes)})`)}`);
    }
  }
}
