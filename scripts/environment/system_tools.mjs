/** System packages that only the tests need; installed where apt and root are at hand. */
import { findOnPath, step } from "../command.mjs";

/** Program looked for, Debian package that brings it. */
const wanted = [
  ["valgrind", "valgrind"],
  ["heaptrack", "heaptrack"],
  ["debootstrap", "debootstrap"],
  ["zsh", "zsh"],
  ["fish", "fish"],
  ["promtool", "prometheus"],
];

/** @returns {Promise<{what: string, why: string}[]>} what is still missing */
export async function installSystemTools() {
  const missing = wanted.filter(([program = ""]) => findOnPath(program) === undefined);
  if (missing.length === 0) {
    return [];
  }
  const packages = missing.map(([, name = ""]) => name);
  let why = "not installed";
  if (process.getuid?.() === 0 && findOnPath("apt-get") !== undefined) {
    try {
      const options = { env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" } };
      await step("apt-get update", "apt-get", ["update", "-q"], options);
      await step(
        `apt-get install ${packages.join(" ")}`,
        "apt-get",
        ["install", "-q", "-y", "--no-install-recommends", ...packages],
        options,
      );
      return [];
    } catch (error) {
      if (!(error instanceof Error)) {
        throw error;
      }
      why = error.message;
    }
  }
  return packages.map((what) => ({ what, why }));
}
