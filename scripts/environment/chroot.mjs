/**
 * Debian forky in a folder, for a distribution's builds of CPython 3.13 and newer. Created by
 * debootstrap from the mirror that the machine's own apt uses; needs root, as chroot(2) does.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { findOnPath, SetupError, step } from "../command.mjs";
import { cached } from "./cache.mjs";

export const suite = "forky";
const pythons = ["python3.13", "python3.14", "python3.15"];
/** Includes headers, because agent/layouts/generate.py checks its tables against them. */
const packages = pythons.flatMap((name) => [name, `lib${name}-dev`]);
/** Builds that attach refuses by name, a host that embeds the shared library, and other allocators to test with.
 * Installed by apt, because debootstrap does not support virtual packages. */
const targets = [
  ...["python3.13-dbg", "python3.14-dbg", "uwsgi-core", "uwsgi-plugin-python3"],
  ...["libjemalloc2", "libtcmalloc-minimal4t64"],
];
const script = "/usr/share/debootstrap/scripts/sid";

/**
 * @returns {Promise<string>} absolute path of the root folder
 * @throws {Error} why it is unavailable
 */
export async function makeChroot() {
  if (process.getuid?.() !== 0) {
    throw new SetupError("needs root");
  }
  const debootstrap = findOnPath("debootstrap");
  if (debootstrap === undefined || !existsSync(script)) {
    throw new SetupError("needs debootstrap");
  }
  const mirror = debianMirror();
  return await cached(suite, [...packages, ...targets, mirror], async (folder) => {
    await step(`Debian ${suite} with ${pythons.join(", ")} by debootstrap`, debootstrap, [
      ...["--variant=minbase", "--no-check-gpg", `--include=${packages.join(",")}`],
      ...[suite, folder, mirror, script],
    ]);
    const apt = [
      ...[folder, "/usr/bin/env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-q"],
      ...["-o", "Acquire::Check-Valid-Until=false"], // the mirror may be out of date
    ];
    await step(`${suite}: apt-get update`, "chroot", [...apt, "update"]);
    await step(`${suite}: apt-get install ${targets.join(" ")}`, "chroot", [
      ...[...apt, "install", "-y", "--no-install-recommends", ...targets],
    ]);
    await step(`${suite}: apt-get clean`, "chroot", [...apt, "clean"]);
  });
}

/** The first Debian archive (not security updates) among apt's sources. */
export function debianMirror() {
  const mirror = aptSources()
    .split("\n")
    .filter((line) => !line.trimStart().startsWith("#"))
    .flatMap((line) => line.match(/https?:\/\/\S+/g) ?? [])
    .find((address) => /\/debian\/?$/.test(address));
  if (mirror === undefined) {
    throw new SetupError("no Debian mirror in this machine's apt sources");
  }
  return mirror;
}

function aptSources() {
  const folder = "/etc/apt/sources.list.d";
  const files = existsSync(folder) ? readdirSync(folder).map((name) => join(folder, name)) : [];
  return ["/etc/apt/sources.list", ...files]
    .filter((file) => /\.(list|sources)$/.test(file) && existsSync(file))
    .map((file) => readFileSync(file, "utf8"))
    .join("\n");
}
