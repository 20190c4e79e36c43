/** Small rules of this repository that no other tool checks. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { capture } from "../command.mjs";
import { npm, root } from "../setup.mjs";
import { say, sum, verdicts } from "./stream.mjs";

export async function checkHouse() {
  // Loaded late: it needs node_modules.
  const { linksLeadSomewhere } = await import("./links.mjs");
  return sum([
    registriesAreUnnamed(),
    await lockFileIsWhole(),
    await linksLeadSomewhere(),
    await casesAreUnnamed(),
    await privateMembersAreHard(),
  ]);
}

/**
 * npm ci refuses a lock file that lacks packages for other platforms, and npm install silently
 * leaves them out if the registry does not have them.
 */
async function lockFileIsWhole() {
  const { status, output } = await capture(...npm("ci", "--dry-run"), { cwd: root });
  const wrong = output.match(/^npm error (Missing|Invalid): .*$/gm) ?? [];
  for (const line of wrong) {
    say(`package-lock.json: ${line}`);
  }
  if (status !== 0 && wrong.length === 0) {
    say(output);
  }
  return verdicts([status === 0]);
}

/**
 * A clone installs from the registry that its machine is configured for, so no lock file or list of
 * requirements may name one.
 */
function registriesAreUnnamed() {
  const pinned = [
    ["package-lock.json", /"resolved": *"[a-z+]+:.*/],
    [".npmrc", /[a-z]+:\/\/.*/],
    ["test/requirements.txt", /[a-z]+:\/\/.*/],
    ["test/requirements-torch.txt", /[a-z]+:\/\/.*/],
    ["test/requirements-packaging.txt", /[a-z]+:\/\/.*/],
    ["test/requirements-wheelhouse.txt", /[a-z]+:\/\/.*/],
  ];
  return verdicts(
    pinned.map(([file, pattern]) => {
      const found = readFileSync(join(root, String(file)), "utf8").match(pattern ?? "");
      if (found !== null) {
        say(`${file} names a registry: ${found[0]}`);
        say("to fix it: npm install --package-lock-only, or remove the address");
      }
      return found === null;
    }),
  );
}

/** A diagnosis must rely on evidence, so shipped code must not mention a leak bench case. */
async function casesAreUnnamed() {
  const cases = readdirSync(join(root, "leakbench/cases"));
  const names = cases.flatMap((name) => ["-e", name]);
  const { status, output } = await capture(
    "git",
    ["grep", "--untracked", "-nwF", ...names, "--", "src", "agent", "python", "web"],
    { cwd: root },
  );
  const nothingFound = 1;
  if (status !== nothingFound) {
    say(`a case of the leak bench is named here:\n${output}`);
  }
  return verdicts([cases.length > 0 && status === nothingFound]);
}

/** A private member is `#name`: the keyword only hides it from the compiler. JavaScript has no `#constructor`. */
async function privateMembersAreHard() {
  const member =
    /(?:^\s*|[(,]\s*)(?:private|protected) (?!constructor\b)(?:(?:static|readonly|async|override|get|set) )*\w+[?!]?\s*(?:[:(=;<]|$)/;
  const { output } = await capture("git", ["ls-files", "*.ts", "*.tsx"], { cwd: root });
  const found = output.split("\n").flatMap((file) =>
    file === "" || !existsSync(join(root, file))
      ? []
      : readFileSync(join(root, file), "utf8")
          .split("\n")
          .flatMap((line, at) => (member.test(line) ? [`${file}:${at + 1}: ${line.trim()}`] : [])),
  );
  for (const line of found) {
    say(line);
  }
  if (found.length > 0) {
    say("to fix it: call the member #name; a parameter property becomes a field and an assignment");
  }
  return verdicts([output !== "" && found.length === 0]);
}
