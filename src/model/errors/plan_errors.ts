/** Errors of `tidemark plan`. */
import { oneLine, TidemarkError } from "./errors.js";

const NOT_A_MODEL = " does not describe a model: ";

/**
 * TM-E085: an invalid configuration or weight file of a model: not JSON, missing sizes, impossible numbers; or a family
 * whose layers no reader knows, without weight files that show them.
 */
export function notAModel(
  source: string,
  detail: string,
  cause = "it was cut off, edited, or belongs to another program",
): TidemarkError {
  return new TidemarkError(
    "TM-E085",
    2,
    `${oneLine(source)}${NOT_A_MODEL}${oneLine(detail, 200)}`,
    cause,
    "name the folder that holds the model's config.json",
  );
}

/** A whole file whose values are missing or impossible: the same id. */
export function invalidModel(source: string, detail: string): TidemarkError {
  return notAModel(source, detail, "it was edited, or belongs to another program");
}

/** A folder without the files of a model: the same id. */
export function noModelFiles(folder: string, detail: string): TidemarkError {
  return notAModel(folder, detail, "it is another folder, or its download is not complete");
}

/** A configuration of an adapter, of DeepSpeed or of accelerate in the model's place: the same id. */
export function configOfJob(source: string, detail: string): TidemarkError {
  return new TidemarkError(
    "TM-E085",
    2,
    `${oneLine(source)}${NOT_A_MODEL}${oneLine(detail, 200)}`,
    "",
    "name the folder that holds the base model's config.json, and give this file with --config",
  );
}

/** TM-E003 of a path that may be the name of a model on Hugging Face. */
export function notDownloaded(path: string): TidemarkError {
  return new TidemarkError(
    "TM-E003",
    2,
    `no such model folder or file: ${oneLine(path)}`,
    "the name may be misspelled or relative to another directory, and models are not downloaded",
    `for a model of Hugging Face: hf download ${oneLine(path)} config.json --local-dir ${oneLine(path.replace(/.*\//, ""))}`,
  );
}

/** A family whose layers no reader knows, without weight files that show them: the same id. */
export function noReader(
  source: string,
  what: string,
  next = "if its layers are those of a known family, without state spaces or other parts, set model_type to that family, such as llama, in a copy of the file",
): TidemarkError {
  return new TidemarkError(
    "TM-E085",
    2,
    `${oneLine(source)}: ${oneLine(what, 200)}`,
    "a plan of other layers would be wrong",
    next,
  );
}

/** TM-E086: a job that no library or engine runs as asked: heads over devices, layers over stages, an encoder in TGI. */
export function cannotDivide(what: string, next: string): TidemarkError {
  return new TidemarkError("TM-E086", 2, oneLine(what), "", oneLine(next));
}

/** The same error of a file that was not read as a model: a configuration of a job, a log. */
export function asOtherFile(error: unknown, what: string, next: string): unknown {
  return error instanceof TidemarkError && error.id === "TM-E085"
    ? new TidemarkError("TM-E085", 2, error.what.replace(NOT_A_MODEL, ` ${what}: `), "", next)
    : error;
}
