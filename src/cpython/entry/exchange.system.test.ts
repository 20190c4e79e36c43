/** The files of an exchange, with a real Python as the process: the first word in the file decides. */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { present } from "../../model/base/present.js";
import { Exchange } from "./exchange.js";

let exchange: Exchange;
beforeEach(() => {
  exchange = Exchange.open(process.pid, 'import sys\nsys.stdout.write("worked")\nreturn "answer"');
});
afterEach(() => exchange.close());

/** The output of the process that runs the script. */
function run(): string {
  return spawnSync("python3", ["-c", exchange.source], { encoding: "utf8" }).stdout;
}

it("a script that is already running answers and cannot be withdrawn", () => {
  expect(exchange.read()).toEqual({ state: "waiting" });
  expect(run()).toBe("worked");
  const answer = { state: "done", text: "answer", closed: true };
  expect(exchange.read()).toEqual(answer);
  expect(exchange.withdraw()).toBe(false);
  expect(exchange.read()).toEqual(answer);
});

it("a withdrawn script does nothing, even if it runs much later", () => {
  expect(exchange.withdraw()).toBe(true);
  expect(run()).toBe("");
  expect(exchange.read()).toEqual({ state: "waiting" });
});

it("a script that is withdrawn while it runs still answers", async () => {
  exchange.close();
  const folder = mkdtempSync(join(tmpdir(), "tidemark-exchange-"));
  const waits = `import os, time
while not os.path.exists("${folder}/go"): time.sleep(0.01)
return "late"`;
  exchange = Exchange.open(process.pid, waits);
  const child = spawn("python3", ["-c", exchange.source]);
  await expect.poll(() => exchange.read()).toEqual({ state: "taken" });
  expect(exchange.withdraw()).toBe(false);
  writeFileSync(join(folder, "go"), "");
  await once(child, "exit");
  expect(exchange.read()).toEqual({ state: "done", text: "late", closed: true });
  rmSync(folder, { recursive: true });
});

it("an answer says whether the process still has it open", async () => {
  exchange.close();
  const slow = `import os, sys
close = os.close
os.close = lambda descriptor: (sys.stdin.readline(), close(descriptor), print("closed", flush=True))
exec(sys.stdin.readline())
sys.stdin.readline()`;
  const child = spawn("python3", ["-c", slow]);
  exchange = Exchange.open(present(child.pid), 'raise LookupError("none")');
  child.stdin.write(`exec(${JSON.stringify(exchange.source)})\n`);
  const answer = { state: "raised", text: "LookupError: none" };
  await expect.poll(() => exchange.read()).toEqual({ ...answer, closed: false });
  child.stdin.write("\n");
  await once(child.stdout, "data");
  expect(exchange.read()).toEqual({ ...answer, closed: true });
  child.stdin.end();
  await once(child, "exit");
});
