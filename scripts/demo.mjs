/**
 * `npm run demo`: sets up, builds, runs examples/inference_service under Tidemark, and writes its
 * recording and report.
 */
import { spawn } from "node:child_process";
import { join } from "node:path";
import { build } from "./build.mjs";
import { runAsScript, SetupError } from "./command.mjs";
import { root } from "./setup.mjs";

const recording = "demo.tidemark";
const report = "demo.html";

async function demo() {
  await build();
  await tidemark("run", "--force", "-o", recording, "examples/inference_service");
  await tidemark("report", recording, "-o", report);
  process.stdout.write(
    `\nrecording  ${join(root, recording)}   (npx tidemark summary ${recording})\n` +
      `report     ${join(root, report)}   (open it in a browser)\n`,
  );
}

/** @param {string[]} args */
function tidemark(...args) {
  process.stdout.write(`\n$ npx tidemark ${args.join(" ")}\n`);
  return new Promise((resolve, reject) => {
    const child = spawn(join(root, "bin/tidemark"), args, { cwd: root, stdio: "inherit" });
    child.on("error", reject);
    child.on("close", (code, signal) => {
      if (code === 0) {
        resolve(undefined);
      } else {
        reject(new SetupError(`tidemark ${args[0]} ended with ${signal ?? `exit code ${code}`}`));
      }
    });
  });
}

await runAsScript(import.meta, demo);
