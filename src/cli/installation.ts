/** Where the parts of this installation lie; all beside the compiled program. */
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { badUsage, notInstalled, unsupportedPlatform } from "../model/errors.js";

export const LIBRARY_PATH = inDist("native/libtidemark.so");
/** Sources of the Python package, for what is handed to a running program. */
export const PYTHON_FOLDER = fileURLToPath(new URL("../../python/tidemark", import.meta.url));
const GUARD_PATH = inDist("native/tidemark-guard");

function inDist(path: string): string {
  return fileURLToPath(new URL(`../../dist/${path}`, import.meta.url));
}

/** Throws TidemarkError on anything but Linux on x86-64. */
export function requireLinux(): void {
  if (process.platform !== "linux" || process.arch !== "x64") {
    throw unsupportedPlatform(`this machine is ${process.platform} on ${process.arch}`);
  }
}

/** The descriptor that tidemark-guard left; throws TidemarkError where there is none. */
export function guardDescriptor(): number {
  for (const path of [GUARD_PATH, LIBRARY_PATH]) {
    if (!existsSync(path)) {
      throw notInstalled(`${path} is missing`, "build it with: npm run build");
    }
  }
  const descriptor = Number(process.env.TIDEMARK_GUARD_FD ?? "");
  if (!Number.isInteger(descriptor) || descriptor < 3) {
    throw badUsage("'run' was started without its guard", "start it through bin/tidemark");
  }
  return descriptor;
}
