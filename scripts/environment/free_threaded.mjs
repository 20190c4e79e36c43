/**
 * CPython without a GIL, built from the source package of Debian forky. attach refuses it by name, and only
 * its native memory is recorded. Debian has no package for it.
 */
import { createHash } from "node:crypto";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { findOnPath, SetupError, step } from "../command.mjs";
import { findCompiler } from "../setup.mjs";
import { cached } from "./cache.mjs";
import { debianMirror, suite } from "./chroot.mjs";

/** The newest first; a mirror may lack the source of some. */
const sources = ["python3.14", "python3.13"];
const longestMs = 120_000;

/**
 * @returns {Promise<string>} folder of the interpreter's executables
 * @throws {Error} why it is unavailable
 */
export async function makeFreeThreaded() {
  if (findOnPath("make") === undefined) {
    throw new SetupError("needs make");
  }
  const mirror = debianMirror().replace(/\/$/, "");
  const made = await cached("free-threaded", [suite, ...sources, mirror], async (folder) => {
    const tree = join(folder, "source");
    mkdirSync(tree);
    const { name, archive } = await fetchSource(mirror);
    writeFileSync(join(tree, "source.tar.xz"), archive);
    await step(`${name}: unpack`, "python3", ["-m", "tarfile", "-e", "source.tar.xz"], {
      cwd: tree,
    });
    const build = [
      "cd */",
      `./configure CC='${findCompiler()}' CFLAGS=-O1 --disable-gil --without-ensurepip --disable-test-modules --prefix='${folder}'`,
      `make -j${availableParallelism()}`,
      "make altinstall COMPILEALL_OPTS='-q -x .'", // its modules are compiled when they are imported
    ].join(" && ");
    await step(`${name} without a GIL: configure, make, install`, "sh", ["-c", build], {
      cwd: tree,
    });
    rmSync(tree, { recursive: true });
  });
  return join(made, "bin");
}

/** @param {string} mirror @returns {Promise<{name: string, archive: Buffer}>} */
async function fetchSource(mirror) {
  const index = await fetchBytes(`${mirror}/dists/${suite}/main/source/Sources.gz`);
  const paragraphs = index === null ? [] : gunzipSync(index).toString("utf8").split("\n\n");
  for (const name of sources) {
    const paragraph = paragraphs.find((text) => text.startsWith(`Package: ${name}\n`)) ?? "";
    const folder = /^Directory: (\S+)$/m.exec(paragraph)?.[1];
    const [, hash, file] = /^ ([0-9a-f]{64}) \d+ (\S+\.orig\.tar\.xz)$/m.exec(paragraph) ?? [];
    const archive = file && (await fetchBytes(`${mirror}/${folder}/${file}`));
    if (archive && createHash("sha256").update(archive).digest("hex") === hash) {
      return { name, archive };
    }
  }
  throw new SetupError(`the mirror has no source of ${sources.join(" or ")}`);
}

/** @param {string} address @returns {Promise<Buffer | null>} null if it is unavailable */
async function fetchBytes(address) {
  try {
    const response = await fetch(address, { signal: AbortSignal.timeout(longestMs) });
    return response.ok ? Buffer.from(await response.arrayBuffer()) : null;
  } catch {
    return null;
  }
}
