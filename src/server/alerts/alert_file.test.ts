/** Alerts survive a restart; a file that does not fit is put aside. */
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { StoredAlert } from "./alert_book.js";
import { ALERT_FILE, readAlerts, writeAlerts } from "./alert_file.js";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "tidemark-alerts-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const alert: StoredAlert = {
  ...{ id: "a", service: "__proto__", version: "", host: "", cause: "growth", state: "firing" },
  ...{ severity: "warning", rules: ["leak"], summary: "It leaks.", sinceMs: 1, lastMs: 2 },
  line: { function: "f", file: "a.py", line: 1, kind: "python" },
  holding: { leak: 1 },
};
const notified = new Map([
  ["__proto__", new Map([["a", { state: "firing", severity: "warning", atMs: 2 } as const]])],
]);
const NOTHING = { alerts: [], notified: new Map(), evaluatedMs: 0 };

test("what was written is read", () => {
  const state = { alerts: [alert], notified, evaluatedMs: 3 };
  writeAlerts(folder, state);
  expect(readAlerts(folder, (text) => expect.fail(text))).toEqual(state);
  expect(readdirSync(folder)).toEqual([ALERT_FILE]);
});

test("no file is no alert and no warning", () => {
  expect(readAlerts(folder, (text) => expect.fail(text))).toEqual(NOTHING);
});

const whole = { form: 1, evaluatedMs: 0, alerts: [alert], notified: [] };
test.each([
  ["cut off", JSON.stringify(whole).slice(0, 40)],
  ["of a newer version", JSON.stringify({ ...whole, form: 2 })],
  ["without what was sent", JSON.stringify({ ...whole, notified: null })],
  ["with a time that is none", JSON.stringify({ ...whole, alerts: [{ ...alert, lastMs: "2" }] })],
  ["with a state that is unknown", JSON.stringify({ ...whole, alerts: [{ ...alert, state: "" }] })],
  ["a list", "[]"],
])("a file that is %s is put aside", (_, text) => {
  writeFileSync(join(folder, ALERT_FILE), text);
  const warnings: string[] = [];
  expect(readAlerts(folder, (line) => warnings.push(line))).toEqual(NOTHING);
  expect(warnings).toEqual([expect.stringMatching(/they are kept in .*alerts\.json\.unreadable$/)]);
  expect(readdirSync(folder)).toEqual([`${ALERT_FILE}.unreadable`]);
});
