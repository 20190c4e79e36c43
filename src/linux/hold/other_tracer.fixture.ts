/** Another tool that pauses a process, for tests: this process itself pauses one after the other. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import type { Pid } from "../../model/base/units.js";
import { GUARD_PATH } from "../installation.js";

/** Resolves once it is paused, with the function that releases it. */
export async function pausedByOther(pid: Pid): Promise<() => Promise<void>> {
  const guard = spawn(GUARD_PATH, ["hold", String(pid)], { stdio: ["pipe", "pipe", "ignore"] });
  guard.stdin.write("hold\t120000\n");
  await new Promise<void>((resolve) => {
    let said = "";
    guard.stdout.on("data", (chunk: Buffer) => {
      said += chunk.toString();
      if (said.includes("held")) {
        resolve();
      }
    });
  });
  return async () => {
    const exit = once(guard, "exit");
    guard.stdin.end();
    await exit;
  };
}
