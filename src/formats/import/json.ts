/** JSON of other tools, whose structure is not trusted. */
import { tooLarge } from "../../model/errors/errors.js";
import { ForeignFault, type ForeignFile, MOST_JSON_BYTES } from "./importer.js";

export type Json = null | boolean | number | string | Json[] | JsonObject;
export interface JsonObject {
  readonly [key: string]: Json | undefined;
}

export function parseJson({ path, bytes }: ForeignFile): Json {
  if (bytes.length > MOST_JSON_BYTES) {
    throw tooLarge(path, "256 MiB of JSON");
  }
  try {
    return JSON.parse(bytes.toString("utf8"));
  } catch (error) {
    if (error instanceof SyntaxError) {
      throw new ForeignFault("it is not complete JSON");
    }
    throw error;
  }
}

export function objectOf(value: Json | undefined): JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? value : {};
}

export function listOf(value: Json | undefined): readonly Json[] {
  return Array.isArray(value) ? value : [];
}

/** 0 if it is not a number. */
export function numberOf(value: Json | undefined): number {
  return typeof value === "number" && Number.isFinite(value) ? value : 0;
}

/** "" if it is not a string. */
export function textOf(value: Json | undefined): string {
  return typeof value === "string" ? value : "";
}

/** Throws ForeignFault if the list is missing. */
export function requiredList(value: Json | undefined, what: string): readonly Json[] {
  if (!Array.isArray(value)) {
    throw new ForeignFault(`it has no ${what}`);
  }
  return value;
}
