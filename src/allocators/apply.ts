/** What a setting changes in the environment of a program. */
import { interpreterOf } from "../inspect/index.js";
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

/** How to start the program under a setting without Tidemark: variables, or what a thread has to do. */
export function deploymentOf(setting: Setting): string {
  if (setting.name === "trim") {
    return "start a daemon thread that calls ctypes.CDLL(None).malloc_trim(0) every second";
  }
  const { name, library, environment } = setting;
  const path = library === undefined ? null : findLibrary(library);
  const variables = path === null ? environment : { LD_PRELOAD: path };
  const words = Object.entries(variables).map(([variable, value]) => `${variable}=${value}`);
  return name === "glibc" ? "" : words.join(" ");
}

function inFront(path: string, before: string | undefined): string {
  return before ? `${path}:${before}` : path;
}

/** Why a Python of this version cannot use the setting; null if it can. `version` null: not recognized. */
export function versionObstacle({ oldestPython }: Setting, version: number | null): string | null {
  if (oldestPython === undefined || (version !== null && version >= oldestPython)) {
    return null;
  }
  return version === null
    ? "the program is not started by a Python that was recognized"
    : `needs Python 3.${oldestPython % 100} or newer, this is 3.${version % 100}`;
}

/** `deploymentOf` a setting of this name. Throws TM-E002 for an unknown name. */
export function allocatorDeployment(name: string): string {
  return deploymentOf(settingNamed(name));
}

/** For `tidemark run --allocator NAME`. Throws TM-E002 for an unknown name and for a Python that is too old. */
export function allocatorEnvironment(
  name: string,
  command: readonly string[],
): Record<string, string> {
  const setting = settingNamed(name);
  const version =
    setting.oldestPython === undefined ? null : (interpreterOf(command)?.version ?? null);
  const why = versionObstacle(setting, version);
  // A launcher, such as torchrun, may start a Python that is new enough.
  if (why !== null && version !== null) {
    throw badUsage(`--allocator ${name} ${why}`, "choose another allocator or Python");
  }
  return environmentOf(setting);
}
