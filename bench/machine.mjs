import { execFileSync } from "node:child_process";
import { cpus, release, totalmem } from "node:os";

/** One line about the machine that produced the figures. @param {string} python */
export function describeMachine(python) {
  const version = execFileSync(python, ["-c", "import sys; print(sys.version.split()[0])"], {
    encoding: "utf8",
  }).trim();
  return (
    `${cpus().length} x ${cpus()[0].model.trim()}, ${Math.round(totalmem() / 2 ** 30)} GiB, Linux ${release()}, ` +
    `Node ${process.versions.node}, Python ${version}, ${new Date().toISOString().slice(0, 10)}`
  );
}
