/** A collector in a container sees the groups of other containers from its own cgroup namespace. */
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { mkdirSync, rmdirSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, expect, test } from "vitest";
import { present } from "../../model/base/present.js";
import { findCgroup } from "./cgroup.js";

const made: string[] = [];
afterEach(() => {
  for (const folder of made.splice(0).reverse()) {
    rmdirSync(folder);
  }
});

function makeGroup(path: string): string | null {
  try {
    mkdirSync(path);
    made.push(path);
    return path;
  } catch {
    return null;
  }
}

const parent = makeGroup(
  join(findCgroup(process.pid)?.directories[0] ?? "", `tidemark-test-${process.pid}`),
);
const canUnshare = spawnSync("unshare", ["--cgroup", "true"]).status === 0;

test.skipIf(parent === null || !canUnshare)(
  "the group of a process in a sibling is found",
  async () => {
    const [own, other] = ["own", "other"].map((name) =>
      present(makeGroup(join(present(parent), name))),
    );
    const program = spawn("sleep", ["60"], { stdio: "ignore" });
    try {
      writeFileSync(join(present(other), "cgroup.procs"), String(program.pid));
      const linux = fileURLToPath(new URL("../../../dist/linux/index.js", import.meta.url));
      const script = `import(${JSON.stringify(linux)}).then(({ findCgroup }) => console.log(JSON.stringify(
      [${program.pid}, process.pid].map((pid) => findCgroup(pid)))))`;
      // The shell enters the group, then the namespace that has it as its root.
      const words = `echo $$ >${own}/cgroup.procs && exec unshare --cgroup ${process.execPath} -e '${script}'`;
      const said = execFileSync("sh", ["-c", words], { encoding: "utf8" });
      const [theirs, ours] = JSON.parse(said) as { directories: string[] }[];
      const names = (place: { directories: string[] } | undefined) =>
        place?.directories.slice(0, 2).map((folder) => basename(folder));
      expect(names(theirs)).toEqual(["other", basename(present(parent))]);
      expect(names(ours)).toEqual(["own", basename(present(parent))]);
      expect(theirs?.directories[0]).toBe(other);
    } finally {
      program.kill("SIGKILL");
      await new Promise((resolve) => program.once("exit", resolve));
    }
  },
);
