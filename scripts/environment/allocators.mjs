/** Unpacks the allocators that `tidemark allocators` preloads from Debian packages, without installing them. */
import { chmodSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { findOnPath, SetupError, step } from "../command.mjs";
import { cached } from "./cache.mjs";

const packages = ["libjemalloc2", "libmimalloc2.0", "libtcmalloc-minimal4"];

/**
 * @returns {Promise<string>} absolute path of the folder with the libraries
 * @throws {Error} why they are unavailable
 */
export async function makeAllocators() {
  if (findOnPath("apt-get") === undefined || findOnPath("dpkg") === undefined) {
    throw new SetupError("needs apt-get and dpkg");
  }
  const folder = await cached("allocators", packages, async (made) => {
    chmodSync(made, 0o755);
    await step("apt-get update", "apt-get", ["update", "-q"]);
    await step(
      `apt-get download ${packages.join(" ")}`,
      "apt-get",
      ["download", "-q", ...packages],
      {
        cwd: made,
      },
    );
    for (const file of readdirSync(made).filter((name) => name.endsWith(".deb"))) {
      await step(`dpkg -x ${file}`, "dpkg", ["-x", join(made, file), made]);
    }
  });
  return join(folder, "usr/lib/x86_64-linux-gnu");
}
