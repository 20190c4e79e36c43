/** JSON of other tools, whose structure is not trusted. */
import { tooLarge } from "../../model/errors/errors.js";
import { ForeignExcess, ForeignFault, type ForeignFile, MOST_JSON_BYTES } from "./importer.js";

export type Json = null | boolean | number | string | Json[] | JsonObject;
export interface JsonObject {
  readonly [key: string]: Json | undefined;
}

export function parseJson({ path, bytes }: ForeignFile): Json {
  if (bytes.length > MOST_JSON_BYTES) {
    throw tooLarge(path, "256 MiB of JSON");
  }
  requireFewValues(bytes);
  try {
    return JSON.parse(bytes.toString("utf8"));
  } catch (error) {
    if (error instanceof SyntaxError) {
      throw new ForeignFault("it is not complete JSON");
    }
    throw error;
  }
}

/** An empty object takes 56 bytes, a value at least 8: without limits, 256 MiB of "{}," would take 6 GiB. */
const MOST_CONTAINERS = 8_000_000;
const MOST_VALUES = 40_000_000;

/** Counts brackets and commas, also those within strings, before any memory is taken for values. */
function requireFewValues(bytes: Buffer): void {
  let [containers, commas] = [0, 0];
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at];
    commas += byte === 0x2c ? 1 : 0;
    containers += byte === 0x7b || byte === 0x5b ? 1 : 0;
  }
  if (containers > MOST_CONTAINERS || containers + commas > MOST_VALUES) {
    throw new ForeignExcess("8 million objects and 40 million values of JSON");
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

/**
 * A figure that the format has in every row. Throws ForeignFault unless it is a number of at least 0; `ifAbsent`
 * is returned if the key is missing.
 */
export function amountOf(value: Json | undefined, what: string, ifAbsent?: number): number {
  if (value === undefined && ifAbsent !== undefined) {
    return ifAbsent;
  }
  if (typeof value !== "number" || !(value >= 0 && value <= Number.MAX_SAFE_INTEGER)) {
    throw new ForeignFault(`${what} is ${shown(value)}, which is not a possible number`);
  }
  return value;
}

function shown(value: Json | undefined): string {
  if (value === undefined || typeof value === "object") {
    return value === undefined ? "missing" : value === null ? "null" : "no number";
  }
  return String(value).slice(0, 40);
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
