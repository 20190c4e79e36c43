/** What a command requires of the machine and the installation. */
import { existsSync } from "node:fs";
import { GUARD_PATH, LIBRARY_PATH } from "../../linux/installation.js";
import { badUsage, notInstalled, unsupportedPlatform } from "../../model/errors/errors.js";

/** For `tidemark doctor`: what `memcheck` and `asan` need. */
export { toolChecks } from "../../sanitizers/index.js";

/** Throws TidemarkError on anything but Linux on x86-64. */
export function requireLinux(): void {
  if (process.platform !== "linux" || process.arch !== "x64") {
    throw unsupportedPlatform(`this machine is ${process.platform} on ${process.arch}`);
  }
}

/** The descriptor that tidemark-guard passed on to `command`; throws TidemarkError if there is none. */
export function guardDescriptor(command: "run" | "check"): number {
  for (const path of [GUARD_PATH, LIBRARY_PATH]) {
    if (!existsSync(path)) {
      throw notInstalled(`${path} is missing`);
    }
  }
  const descriptor = Number(process.env.TIDEMARK_GUARD_FD ?? "");
  if (!Number.isInteger(descriptor) || descriptor < 3) {
    throw badUsage(`'${command}' was started without its guard`, "start it through bin/tidemark");
  }
  return descriptor;
}
