/** Small rules of the repository that no other tool knows. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { capture } from "../command.mjs";
import { npm, root } from "../setup.mjs";
import { sum, verdicts } from "./stream.mjs";

export async function checkHouse() {
  return sum([registriesAreUnnamed(), await lockFileIsWhole()]);
}

/**
 * npm ci refuses a lock file from which packages for other platforms are missing, and npm install
 * leaves them out silently where the registry does not have them.
 */
async function lockFileIsWhole() {
  const { status, output } = await capture(...npm("ci", "--dry-run"), { cwd: root });
  const wrong = output.match(/^npm error (Missing|Invalid): .*$/gm) ?? [];
  for (const line of wrong) process.stdout.write(`  package-lock.json: ${line}\n`);
  if (status !== 0 && wrong.length === 0) process.stdout.write(`  ${output}\n`);
  return verdicts([status === 0]);
}

/**
 * A clone installs from whatever registry its machine is set up for: no lock file or list of
 * requirements may name one.
 */
function registriesAreUnnamed() {
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
