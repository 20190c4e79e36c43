/** Memory benchmarks under the real asv, in a separate repository. */
import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { environment } from "../environment.js";
import { execute, removeScratch, repository, scratch } from "../run.js";

afterAll(removeScratch);

const { packagesPython } = environment;

const BENCHMARKS = `from tidemark.asv import bytes_per_call, peak_bytes

kept = []

class Loader:
    params = [1, 4]

    def setup(self, count):
        self.text = bytes(30 << 20)  # does not count

    @peak_bytes
    def track_peak(self, count):
        bytes(count << 20)

    @bytes_per_call(calls=10)
    def track_growth(self, count):
        kept.append(bytearray(1000 * count))

@peak_bytes
def track_function():
    bytes(2 << 20)
`;

test.skipIf(packagesPython === null)(
  "peak and growth are results of asv, set-up left out",
  async () => {
    const folder = scratch();
    mkdirSync(join(folder, "benchmarks"));
    writeFileSync(join(folder, "benchmarks/__init__.py"), "");
    writeFileSync(join(folder, "benchmarks/memory.py"), BENCHMARKS);
    writeFileSync(
      join(folder, "asv.conf.json"),
      JSON.stringify({
        version: 1,
        project: "app",
        repo: ".",
        branches: ["HEAD"],
        environment_type: "existing",
      }),
    );
    const git = (...words: string[]) => execFileSync("git", words, { cwd: folder, stdio: "pipe" });
    git("init", "-q");
    git("add", ".");
    git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "start");
    const commit = git("rev-parse", "HEAD").toString().trim();
    const asv = [packagesPython ?? "", "-m", "asv"];
    // asv removes PYTHONPATH and sets it to this.
    const env = { ASV_PYTHONPATH: join(repository, "python") };
    await execute([...asv, "machine", "--yes"], { cwd: folder, env: { ...env, HOME: folder } });
    const outcome = await execute(
      [...asv, "run", "-E", `existing:${packagesPython}`, "--set-commit-hash", commit],
      { cwd: folder, env: { ...env, HOME: folder } },
    );
    expect(outcome.status, `${outcome.stdout}${outcome.stderr}`).toBe(0);
    const place =
      readdirSync(join(folder, "results")).find((name) => !name.endsWith(".json")) ?? "";
    const [file = ""] = readdirSync(join(folder, "results", place)).filter((name) =>
      name.startsWith(commit.slice(0, 8)),
    );
    const text = readFileSync(join(folder, "results", place, file), "utf8");
    const { results } = JSON.parse(text) as { results: Record<string, [number[]]> };
    const [small = 0, large = 0] = results["memory.Loader.track_peak"]?.[0] ?? [];
    expect(small / 2 ** 20).toBeCloseTo(1, 1);
    expect(large / 2 ** 20).toBeCloseTo(4, 1);
    const [slow = 0, fast = 0] = results["memory.Loader.track_growth"]?.[0] ?? [];
    expect(slow).toBeGreaterThan(1000);
    expect(slow).toBeLessThan(1200);
    expect(fast).toBeGreaterThan(4000);
    expect(fast).toBeLessThan(4300);
    expect((results["memory.track_function"]?.[0][0] ?? 0) / 2 ** 20).toBeCloseTo(2, 1);
  },
);
