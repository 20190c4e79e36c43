/** Notes that are shown only once; the user's cache folder stores which were shown. */
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import type { StartPlace } from "../../../record/index.js";
import { namesakes } from "./namesakes.js";

/** More notes than one machine can cause, which bounds the file. */
const MOST_KEPT = 200;

/** Notes before a program is recorded, each shown once: other software named tidemark. */
export function firstRunRemarks(
  python: string,
  place: StartPlace = { cwd: process.cwd(), environment: process.env },
): string[] {
  return notYetShown(namesakes(python, place), pathOf(place));
}

/**
 * Returns the sentences that were not shown before, and marks them. Returns none if the marks cannot be stored,
 * so that they are not shown on every run.
 */
function notYetShown(sentences: readonly string[], path: string): string[] {
  if (sentences.length === 0) {
    return [];
  }
  const shown = readShown(path);
  const fresh = sentences.filter((sentence) => !shown.includes(keyOf(sentence)));
  if (fresh.length === 0) {
    return [];
  }
  try {
    mkdirSync(join(path, ".."), { recursive: true, mode: 0o700 });
    const beside = `${path}.${process.pid}`;
    const keys = [...shown, ...fresh.map(keyOf)].slice(-MOST_KEPT);
    writeFileSync(beside, JSON.stringify(keys), { mode: 0o600 });
    renameSync(beside, path);
    return fresh;
  } catch {
    return [];
  }
}

function readShown(path: string): string[] {
  try {
    const shown: unknown = JSON.parse(readFileSync(path, "utf8"));
    return Array.isArray(shown) ? shown.filter((key) => typeof key === "string") : [];
  } catch {
    return [];
  }
}

function keyOf(sentence: string): string {
  return createHash("sha256").update(sentence).digest("hex").slice(0, 16);
}

function pathOf({ environment }: StartPlace): string {
  return join(
    environment.XDG_CACHE_HOME || join(homedir(), ".cache"),
    "tidemark",
    "shown_notes.json",
  );
}
