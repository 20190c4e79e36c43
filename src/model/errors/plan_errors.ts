/** Errors of `tidemark plan`. */
import { oneLine, TidemarkError } from "./errors.js";

const NOT_A_MODEL = " does not describe a model: ";

/**
 * TM-E085: an invalid configuration or weight file of a model: not JSON, missing sizes, impossible numbers; or a family
 * whose layers no reader knows, without weight files that show them.
 */
export function notAModel(source: string, detail: string): TidemarkError {
  return new TidemarkError(
    "TM-E085",
    2,
    `${oneLine(source)}${NOT_A_MODEL}${oneLine(detail, 200)}`,
    "it was cut off, edited, or belongs to another program",
    "name the folder that holds the model's config.json",
  );
}

/** A family whose layers no reader knows, without weight files that show them: the same id. */
export function noReader(
  source: string,
  what: string,
  next = "for a model built like a known one, set model_type to that family, such as llama, in a copy of the file",
): TidemarkError {
  return new TidemarkError(
    "TM-E085",
    2,
    `${oneLine(source)}: ${oneLine(what, 200)}`,
    "a plan of other layers would be wrong",
    next,
  );
}

/** TM-E086: a job that cannot be divided as asked: heads over devices, layers over stages. */
export function cannotDivide(what: string, next: string): TidemarkError {
  return new TidemarkError("TM-E086", 2, oneLine(what), "", oneLine(next));
}

/** The same error of a file that was not read as a model: a configuration of a job, a log. */
export function asOtherFile(error: unknown, what: string, next: string): unknown {
  return error instanceof TidemarkError && error.id === "TM-E085"
    ? new TidemarkError("TM-E085", 2, error.what.replace(NOT_A_MODEL, ` ${what}: `), "", next)
    : error;
}
