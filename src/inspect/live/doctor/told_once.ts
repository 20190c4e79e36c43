/** Remarks that a person needs once: which were made already is kept in the user's cache folder. */
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import type { StartPlace } from "../../../record/index.js";
import { namesakes } from "./namesakes.js";

/** More remarks than one machine gives rise to: the file stays small. */
const MOST_KEPT = 200;

/** What a person should know before a program is recorded, each sentence once: others of Tidemark's name. */
export function firstRunRemarks(
  python: string,
  place: StartPlace = { cwd: process.cwd(), environment: process.env },
): string[] {
  return notYetTold(namesakes(python, place), pathOf(place));
}

/** The sentences that were not told before, and marks them. None where that cannot be kept: not at every run. */
function notYetTold(sentences: readonly string[], path: string): string[] {
  if (sentences.length === 0) {
    return [];
  }
  const told = readTold(path);
  const fresh = sentences.filter((sentence) => !told.includes(keyOf(sentence)));
  if (fresh.length === 0) {
    return [];
  }
  try {
    mkdirSync(join(path, ".."), { recursive: true, mode: 0o700 });
    const beside = `${path}.${process.pid}`;
    const keys = [...told, ...fresh.map(keyOf)].slice(-MOST_KEPT);
    writeFileSync(beside, JSON.stringify(keys), { mode: 0o600 });
    renameSync(beside, path);
    return fresh;
  } catch {
    return [];
  }
}

function readTold(path: string): string[] {
  try {
    const told: unknown = JSON.parse(readFileSync(path, "utf8"));
    return Array.isArray(told) ? told.filter((key) => typeof key === "string") : [];
  } catch {
    return [];
  }
}

function keyOf(sentence: string): string {
  return createHash("sha256").update(sentence).digest("hex").slice(0, 16);
}

function pathOf({ environment }: StartPlace): string {
  return join(environment.XDG_CACHE_HOME || join(homedir(), ".cache"), "tidemark", "told.json");
}
