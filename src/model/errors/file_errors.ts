/** Errors of files that are named on a command line. */
import { shellWord } from "../base/shell_word.js";
import { type OtherFile, oneLine, TidemarkError } from "./errors.js";

/** TM-E017: an output would overwrite a file that Tidemark did not write, or a file of another kind. */
export function fileExists(path: string): TidemarkError {
  return new TidemarkError(
    "TM-E017",
    2,
    `${oneLine(path)} exists and does not look like a file of this kind that Tidemark wrote`,
    "",
    "name another file, or add --force",
  );
}

/** TM-E016: a file that `tidemark FILE` cannot open. */
export function notOpened(path: string, what: string, next: string): TidemarkError {
  const whole = oneLine(next, Number.POSITIVE_INFINITY); // a command that users copy is never cut
  return new TidemarkError("TM-E016", 2, `${oneLine(path)} is ${what}`, "", whole);
}

/** For text or a page that a tool wrote for people, with the id of {@link notImportable}; `next` names the file to import. */
export function reportOfTool(path: string, what: string, next: string): TidemarkError {
  const whole = oneLine(next, Number.POSITIVE_INFINITY);
  return new TidemarkError(
    "TM-E018",
    2,
    `${oneLine(path)} is ${what}`,
    "tidemark import reads the files that tools write for programs",
    whole,
  );
}

/** TM-E018: a file that no importer recognizes. `unpack`, such as "xz -dk", unpacks a compression that is not read. */
export function notImportable(
  path: string,
  isEmpty: boolean,
  unpack: string | undefined,
): TidemarkError {
  if (unpack !== undefined) {
    const [tool = ""] = unpack.split(" ");
    return new TidemarkError(
      "TM-E018",
      2,
      `${oneLine(path)} is compressed by ${tool}`,
      "tidemark import unpacks gzip, Zstandard and LZ4",
      `unpack it first: ${unpack} ${shellWord(path)}`,
    );
  }
  return new TidemarkError(
    "TM-E018",
    2,
    isEmpty ? `${oneLine(path)} is empty` : `the format of ${oneLine(path)} is not recognized`,
    isEmpty
      ? "the tool that should write it failed or still runs"
      : "it is damaged, or no tool that tidemark import supports wrote it",
    "the formats are listed in: tidemark import --help",
    isEmpty ? {} : { cause: { otherPath: path } satisfies OtherFile },
  );
}

/** TM-E019: a pickle that would run code or build objects other than those of tracemalloc. Nothing was executed. */
export function importedPickleRefused(path: string, what: string, offset: number): TidemarkError {
  return new TidemarkError(
    "TM-E019",
    2,
    `${oneLine(path)} is refused: ${oneLine(what)} at offset ${offset}`,
    "a tracemalloc snapshot has no such object, and Tidemark never executes a pickle",
    "write the file with tracemalloc.take_snapshot().dump(FILE)",
  );
}
