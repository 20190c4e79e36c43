/** tidemark-guard itself: the pool that it keeps, and what it leaves when the recorder dies. */
import { spawnSync } from "node:child_process";
import { existsSync, openSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { CONSTANTS } from "../../segment/layout.js";
import { PoolReader } from "../../segment/pool.js";
import {
  ended,
  folder,
  guard,
  hosted,
  makeFolder,
  messageOf,
  removeFolder,
  run,
  startReady,
} from "./fixtures/hosted.js";

beforeAll(makeFolder);
afterAll(removeFolder);

describe("the pool", () => {
  const pool = [["pool", "8", "4096", "1"]] as const;

  test("is sealed, sized and has the requested options", async () => {
    const { child, report } = await startReady(["sh", "-c", "echo ready; read line"], {
      before: pool,
    });
    const [, pid, descriptor] = messageOf(report, "pool");
    const file = openSync(`/proc/${pid}/fd/${descriptor}`, "r+");
    const header = new PoolReader(file).header();
    expect(header).toMatchObject({
      slotCount: 8,
      periodBytes: 4096,
      options: 1,
      keeperPid: child.pid,
      keeperFd: Number(descriptor),
    });
    expect(header.slotsOffset + 8 * CONSTANTS.TM_SLOT_STRIDE).toBe(
      statSync(`/proc/${pid}/fd/${descriptor}`).size,
    );
    const resize = spawnSync(
      "python3",
      ["-c", `import os\nos.truncate("/proc/${pid}/fd/${descriptor}", 4096)`],
      { encoding: "utf8" },
    );
    expect(resize.stderr).toMatch(/Operation not permitted/);
    child.stdin?.end("\n");
    expect(await ended(child)).toEqual({ code: 0, signal: null });
  });

  test("fits under a file-size limit, which stays the program's", () => {
    const { arguments: words, report } = hosted(["bash", "-c", "ulimit -f"], { before: pool });
    const quoted = words.map((word) => `'${word}'`).join(" ");
    const { stdout } = spawnSync("bash", ["-c", `ulimit -f 50000; exec ${guard} ${quoted}`], {
      encoding: "utf8",
    });
    expect(stdout.trim()).toBe("50000");
    expect(readFileSync(report, "utf8")).toMatch(/^pool\t/m);
  });

  test("if no recorder fits, this is reported, and the guard keeps running", () => {
    const { arguments: words, report } = hosted(["sh", "-c", "echo runs"], { before: pool });
    const quoted = words.map((word) => `'${word}'`).join(" ");
    const { stdout, status } = spawnSync("bash", ["-c", `ulimit -f 10; exec ${guard} ${quoted}`], {
      encoding: "utf8",
    });
    expect({ stdout, status }).toEqual({ stdout: "runs\n", status: 0 });
    expect(readFileSync(report, "utf8")).toMatch(/^nopool\t27\t/m);
  });

  test("outlives a killed recorder: the used slots are saved, the program continues", () => {
    const orphan = join(folder, "left.orphan");
    const claim = `import os, struct, sys, time
pool = sys.argv[1]
time.sleep(0.3)
with open(pool, "r+b") as file:
    header = file.read(4096)
    offset, stride = struct.unpack_from("<QQ", header, 16)
    for slot in (2, 5):
        file.seek(4096 + slot * 32); file.write(struct.pack("<IIQQII", 1, os.getpid(), slot, 0, 1, 0))
        file.seek(offset + slot * stride + 12345); file.write(b"slot %d" % slot)
        file.seek(offset + slot * stride + stride - 7); file.write(b"its end")
print("still here")
sys.exit(9)`;
    // The descriptor's number is not known before: the program finds the keeper's by its name.
    const find = `import glob, os, sys
parent = os.getppid()
pool = next(path for path in glob.glob(f"/proc/{parent}/fd/*") if "tidemark-pool" in os.readlink(path))
sys.argv = ["", pool]
${claim}`;
    const { status, stdout } = run(["python3", "-c", find], {
      before: [...pool, ["orphan", orphan]],
      dieWhen: "started",
    });
    expect({ status, stdout }).toEqual({ status: 9, stdout: "still here\n" });
    const left = statSync(orphan);
    expect(left.mode & 0o777).toBe(0o600);
    expect(left.blocks * 512).toBeLessThan(1 << 20);
    const file = openSync(orphan, "r");
    const reader = new PoolReader(file);
    expect(reader.header()).toMatchObject({ slotCount: 2, periodBytes: 4096 });
    expect(reader.slots().map((slot) => slot.processStartTicks)).toEqual([2, 5]);
    const bytes = readFileSync(orphan);
    for (const [index, slot] of [2, 5].entries()) {
      const { offset, length } = reader.slotRange(index);
      expect(bytes.subarray(offset + 12345, offset + 12351).toString()).toBe(`slot ${slot}`);
      expect(bytes.subarray(offset + length - 7, offset + length).toString()).toBe("its end");
    }
  });

  test("is saved for a second recorder if the first one left the program", () => {
    const orphan = join(folder, "alone.orphan");
    const waits = "for n in $(seq 600); do pgrep -P $PPID node >&2 || break; sleep 0.1; done";
    const script = `${waits}; echo recorders: $(pgrep -P $PPID -c node); exit 7`;
    const { status, stdout, messages } = run(["sh", "-c", script], {
      before: [...pool, ["orphan", orphan], ["env", "LD_PRELOAD", "/nowhere/none.so"]],
      alone: true,
    });
    expect({ status, stdout }).toEqual({ status: 7, stdout: "recorders: 0\n" });
    // With the shell's environment: the program's is not its own.
    expect(messages.find(([verb]) => verb === "completes")).toEqual(["completes", orphan, ""]);
    expect(messages.filter(([verb]) => verb === "exited").map(([, code]) => code)).toEqual([
      String(7 << 8),
    ]);
    expect(new PoolReader(openSync(orphan, "r")).header()).toMatchObject({ periodBytes: 4096 });
  });

  test("is not saved if the recorder finished normally", () => {
    const orphan = join(folder, "none.orphan");
    run(["true"], { before: [...pool, ["orphan", orphan]] });
    expect(existsSync(orphan)).toBe(false);
  });
});
