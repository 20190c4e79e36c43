/** What a setting changes in the environment of a program. */
import type { AllocatorName } from "../model/documents/allocators_document.js";
import { badUsage } from "../model/errors/errors.js";
import { toolMissing } from "../model/errors/tool_errors.js";
import { findLibrary, SETTINGS, type Setting } from "./settings.js";

export const ALLOCATOR_NAMES: readonly AllocatorName[] = SETTINGS.map(({ name }) => name);

/** Throws TM-E002 for an unknown name. */
export function settingNamed(name: string): Setting {
  const found = SETTINGS.find((setting) => setting.name === name);
  if (found === undefined) {
    throw badUsage(`no allocator is named ${name}`, `one of ${ALLOCATOR_NAMES.join(", ")}`);
  }
  return found;
}

/**
 * The variables that put a setting in force, on top of `before`. Throws TM-E090 if its library is not installed.
 */
export function environmentOf(
  setting: Setting,
  before: NodeJS.ProcessEnv = process.env,
): Record<string, string> {
  const { environment, library, pythonPath, install = "" } = setting;
  const changed: Record<string, string> = { ...environment };
  if (pythonPath !== undefined) {
    changed.PYTHONPATH = inFront(pythonPath, before.PYTHONPATH);
  }
  if (library !== undefined) {
    const path = findLibrary(library, before);
    if (path === null) {
      throw toolMissing(setting.name, install);
    }
    changed.LD_PRELOAD = inFront(path, before.LD_PRELOAD);
  }
  return changed;
}

function inFront(path: string, before: string | undefined): string {
  return before ? `${path}:${before}` : path;
}

/** For `tidemark run --allocator NAME`. */
export function allocatorEnvironment(name: string): Record<string, string> {
  return environmentOf(settingNamed(name));
}
