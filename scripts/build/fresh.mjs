/** Records what each output was built from, so that a build only redoes what has changed. */
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { root } from "../setup.mjs";

/**
 * Runs `make` unless every output exists and was made from inputs with the same content.
 * @param {string} name of the stamp, dist/.made/NAME
 * @param {object} from
 * @param {string[]} from.inputs files and folders, from the repository's root
 * @param {string} [from.settings] anything else that affects the result
 * @param {string[]} from.outputs files, from the repository's root
 * @param {() => Promise<void>} make
 */
export async function unlessFresh(name, { inputs, settings = "", outputs }, make) {
  const stamp = join(root, "dist/.made", name);
  const content = fingerprint(inputs, settings);
  const whole = outputs.every((output) => existsSync(join(root, output)));
  if (whole && existsSync(stamp) && readFileSync(stamp, "utf8") === content) {
    return;
  }
  await make();
  mkdirSync(dirname(stamp), { recursive: true });
  writeFileSync(stamp, content);
}

/** @param {string[]} inputs @param {string} settings @returns {string} */
function fingerprint(inputs, settings) {
  const hash = createHash("sha256").update(settings);
  for (const file of inputs.flatMap(filesUnder).sort()) {
    hash.update(`\0${file}\0`).update(readFileSync(join(root, file)));
  }
  return `${hash.digest("hex")}\n`;
}

/**
 * @param {string} path file or folder, from the repository's root; a missing one counts as empty
 * @returns {string[]} files, from the repository's root
 */
export function filesUnder(path) {
  const full = join(root, path);
  if (!existsSync(full)) {
    return [];
  }
  if (!statSync(full).isDirectory()) {
    return [path];
  }
  return readdirSync(full).flatMap((name) => filesUnder(join(path, name)));
}
