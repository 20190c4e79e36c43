/** Small rules of the repository that no other tool knows. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../setup.mjs";
import { verdicts } from "./stream.mjs";

/**
 * A clone installs from whatever registry its machine is set up for: no lock file or list of
 * requirements may name one.
 */
export async function checkHouse() {
  const pinned = [
    ["package-lock.json", /"resolved": *"[a-z+]+:.*/],
    [".npmrc", /[a-z]+:\/\/.*/],
    ["test/requirements.txt", /[a-z]+:\/\/.*/],
    ["test/requirements-torch.txt", /[a-z]+:\/\/.*/],
  ];
  return verdicts(
    pinned.map(([file, pattern]) => {
      const found = readFileSync(join(root, String(file)), "utf8").match(pattern ?? "");
      if (found !== null) {
        process.stdout.write(`  ${file} names a registry: ${found[0]}\n`);
        process.stdout.write(
          "  mend it: npm install --package-lock-only, or take the address out\n",
        );
      }
      return found === null;
    }),
  );
}
