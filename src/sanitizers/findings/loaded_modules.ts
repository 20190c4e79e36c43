/** The shared libraries of the program's Python processes, from the mappings that the hook wrote when each ended. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Owners } from "./owners.js";

/** Absolute paths; null if no process ended by itself. */
export function loadedLibraries(folder: string): ReadonlySet<string> | null {
  const names = readdirSync(folder).filter((name) => name.startsWith("maps."));
  return names.length === 0
    ? null
    : new Set(
        names.flatMap(
          (name) => readFileSync(join(folder, name), "utf8").match(/\/\S.*\.so\S*$/gm) ?? [],
        ),
      );
}

/** A sentence for each name of `--module` of which no extension was loaded: it may be misspelt. */
export function absentModules(wanted: readonly string[], folder: string, owners: Owners): string[] {
  const libraries = loadedLibraries(folder);
  if (libraries === null) {
    return [];
  }
  const modules = [...libraries].map((path) => owners.ofObject(path).module);
  return wanted
    .filter((name) => !modules.some((module) => module === name || module.startsWith(`${name}.`)))
    .map((name) => `--module ${name}: the program loaded no extension of this name.`);
}
