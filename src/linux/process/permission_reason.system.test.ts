/** Each of the kernel's rules is recognized by its facts; two refusals come from the kernel itself. */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { expect, test } from "vitest";
import { explainRefusal, type PtraceFacts } from "./permission_reason.js";

const PTRACE = 1n << 19n;
const refused: PtraceFacts = {
  code: "EACCES",
  memoryReadable: false,
  ownUid: 1000,
  ownCapabilities: 0n,
  ownNamespaceIsInitial: true,
  seccompFiltered: false,
  profile: "unconfined",
  uid: 1000,
  userName: "ada",
  owner: 1000,
  capabilities: 0n,
  sameUserNamespace: true,
  yamaScope: 0,
  place: "shell",
};

test.each([
  [{ uid: 33, userName: "www-data" }, /belongs to www-data/, /sudo -u www-data tidemark/],
  [{ owner: 0 }, /not dumpable/, /sudo/],
  [{ capabilities: 1n << 10n }, /CAP_NET_BIND_SERVICE/, /sudo/],
  [{ yamaScope: 1 }, /ptrace_scope is 1/, /sysctl kernel\.yama/],
  [{ yamaScope: 2 }, /ptrace_scope is 2/, /sudo/],
  [{ yamaScope: 3, ownCapabilities: PTRACE }, /ptrace_scope is 3/, /tidemark run/],
  [{ ownCapabilities: PTRACE, sameUserNamespace: false }, /user namespace/, /own namespace/],
  [
    { ownCapabilities: PTRACE, profile: "docker-default (enforce)" },
    /docker-default/,
    /unconfined/,
  ],
  [{ memoryReadable: true, seccompFiltered: true }, /seccomp/, /outside the sandbox/],
  [{ ownCapabilities: PTRACE }, /refuses \(EACCES\)/, /root/],
] as [Partial<PtraceFacts>, RegExp, RegExp][])("%o", (facts, reason, remedy) => {
  const answer = explainRefusal({ ...refused, ...facts });
  expect(answer.reason).toMatch(reason);
  expect(answer.remedy).toMatch(remedy);
});

test("the remedy fits the environment", () => {
  const other = { ...refused, uid: 0, userName: "root" };
  expect(explainRefusal({ ...other, place: "docker" }).remedy).toMatch(/--cap-add SYS_PTRACE/);
  expect(explainRefusal({ ...other, place: "kubernetes" }).remedy).toMatch(/SYS_PTRACE.*kubectl/);
  const barred = { ...refused, memoryReadable: true, seccompFiltered: true };
  expect(explainRefusal({ ...barred, place: "docker" }).remedy).toMatch(/seccomp=unconfined/);
});

/** Became nobody's by setuid, without an exec. */
const LOWERED = `import os, time
os.setgid(65534)
os.setuid(65534)
print("up", flush=True)
time.sleep(60)`;

test.runIf(process.getuid?.() === 0).each([
  ["another user's process", ["sleep", "60"], null, /belongs to root, and CAP_SYS_PTRACE/],
  ["a process that changed its uid", ["python3", "-c", LOWERED], "up", /it is not dumpable/],
] as const)("%s, as the kernel sees it", async (_, [file, ...words], said, reason) => {
  const program = spawn(file, words);
  await (said === null ? once(program, "spawn") : once(program.stdout, "data"));
  try {
    const module = new URL("../../../dist/linux/process/permission.js", import.meta.url).href;
    // Imported before the uid changes, because the checkout may be in a folder of root's.
    const source = `
      const { readAttachPermission } = await import(${JSON.stringify(module)});
      process.setgid(65534);
      process.setuid(65534);
      console.log(JSON.stringify(readAttachPermission(${program.pid})));`;
    const asked = spawnSync(process.execPath, ["--input-type=module", "-e", source], {
      encoding: "utf8",
    });
    expect(JSON.parse(asked.stdout)).toMatchObject({
      ok: false,
      reason: expect.stringMatching(reason),
    });
  } finally {
    program.kill("SIGKILL");
  }
});
