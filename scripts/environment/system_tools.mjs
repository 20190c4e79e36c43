/** System packages that only the tests need; installed if apt and root are available. */
import { findOnPath, step } from "../command.mjs";

/** @type {[program: string, ...packages: string[]][]} program looked for, Debian packages that bring it */
const wanted = [
  ["valgrind", "valgrind"],
  ["heaptrack", "heaptrack"],
  ["debootstrap", "debootstrap"],
  ["zsh", "zsh"],
  ["fish", "fish"],
  ["promtool", "prometheus"],
  ["prometheus-alertmanager", "prometheus-alertmanager"],
  // clang alone has no sanitizer runtimes.
  ["clang", "clang", "libclang-rt-dev"],
];

/** @returns {Promise<{what: string, why: string}[]>} what is still missing */
export async function installSystemTools() {
  const missing = wanted.filter(([program]) => findOnPath(program) === undefined);
  if (missing.length === 0) {
    return [];
  }
  if (process.getuid?.() !== 0 || findOnPath("apt-get") === undefined) {
    return missing.map(([, what = ""]) => ({ what, why: "not installed" }));
  }
  const options = { env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" } };
  const skipped = [];
  try {
    await step("apt-get update", "apt-get", ["update", "-q"], options);
  } catch (error) {
    const why = reasonOf(error);
    return missing.map(([, what = ""]) => ({ what, why }));
  }
  // One by one, so that a package that this release lacks does not prevent the others.
  for (const [, ...packages] of missing) {
    const words = ["install", "-q", "-y", "--no-install-recommends", ...packages];
    try {
      await step(`apt-get install ${packages.join(" ")}`, "apt-get", words, options);
    } catch (error) {
      skipped.push({ what: packages.join(" "), why: reasonOf(error) });
    }
  }
  return skipped;
}

/** @param {unknown} error */
function reasonOf(error) {
  if (!(error instanceof Error)) {
    throw error;
  }
  return error.message;
}
