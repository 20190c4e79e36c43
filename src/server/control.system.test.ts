import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { requestBackup, takeBackupRequests } from "./control.js";

const folder = mkdtempSync(join(tmpdir(), "tidemark-control-"));
afterAll(() => rmSync(folder, { recursive: true }));

it("a server that is stopped during a backup completes it, answers, and takes no other one", async () => {
  const outcome = { folder: "/backup", madeMs: 1, files: 2, bytes: 3 };
  let complete = () => {};
  let begin = () => {};
  const begun = new Promise<void>((resolve) => {
    begin = resolve;
  });
  const backUp = async () => {
    await new Promise<void>((resolve) => {
      complete = resolve;
      begin();
    });
    return outcome;
  };
  const end = await takeBackupRequests(folder, backUp, () => {});
  const asked = requestBackup(folder, "/backup");
  await begun;
  const over = end();
  expect(await requestBackup(folder, "/other")).toBeNull();
  complete();
  expect(await asked).toEqual(outcome);
  await over;
});
