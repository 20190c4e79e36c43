/** The diagnosis tab in a real browser: of a recorded program that leaks, and of every kind of verdict. */

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Locator, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { evidenceOf } from "../src/diagnose/evidence/evidence.fixture.js";
import { diagnose } from "../src/diagnose/index.js";
import { diagnosisPage } from "../src/inspect/recorded/diagnosis.js";
import { type DiagnosisJson, VERDICT_KINDS } from "../src/model/documents/diagnosis_document.js";
import { python, validate } from "./recorded_app.js";
import {
  closeBrowser,
  DESKTOP,
  noSidewaysScroll,
  type OpenPage,
  openBrowser,
  openFile,
  openReport,
  PHONE,
  using,
  words,
} from "./report_page.js";
import { execute, removeScratch, scratch, tidemark } from "./run.js";
import { serviceReport } from "./service_report.js";

const leaky = `import json, time
sessions = {}
history = []
def login(number):
    sessions[number] = json.loads('["' + "x" * 20000 + '"]')
def record(number):
    history.append(bytearray(9000))
def handle(number):
    login(number)
    record(number)
number = 0
end = time.monotonic() + 27
while time.monotonic() < end:
    handle(number)
    number += 1
    time.sleep(0.004)
`;

let folder: string;

beforeAll(openBrowser);
afterAll(async () => {
  await closeBrowser();
  removeScratch();
});

const part = (page: Page, name: string): Locator =>
  page.getByRole("tabpanel").getByLabel(name, { exact: true });

async function openTab(page: Page): Promise<void> {
  await page.getByRole("tab", { name: "Diagnosis" }).click();
  await part(page, "Verdict").waitFor();
}

describe("a recording of a program that leaks", () => {
  let said: DiagnosisJson;
  const open = (options = DESKTOP) => openFile(join(folder, "leaky.html"), options);

  beforeAll(async () => {
    folder = scratch();
    writeFileSync(join(folder, "leaky.py"), leaky);
    const words = ["run", "-f", "-o", "leaky.tidemark", "--", python, "leaky.py"];
    const asked = [tidemark, "diagnose", "leaky.tidemark", "--json"];
    // On a busy machine a lookup may exceed what the recorder may spend in half a minute: then it is recorded again.
    let attempts = 0;
    do {
      expect((await execute([tidemark, ...words], { cwd: folder })).status).toBe(0);
      const { stdout } = await execute(asked, { cwd: folder });
      said = validate(stdout, "diagnosis") as unknown as DiagnosisJson;
      attempts++;
    } while (attempts < 3 && said.limits.some((limit) => /^No holders were looked up/.test(limit)));
    const written = await execute([tidemark, "report", "leaky.tidemark"], { cwd: folder });
    expect([written.status, written.stderr]).toEqual([0, ""]);
  });

  test("the tab shows the output of diagnose", () =>
    using(open(), async (page) => {
      await openTab(page);
      expect(said.verdict.kind).toBe("python-leak");
      const verdict = await words(part(page, "Verdict"));
      expect(verdict).toContain(said.verdict.kind);
      expect(verdict).toContain(`${Math.round(said.verdict.confidence * 100)} % sure`);
      expect(verdict).toContain(said.verdict.summary);
      expect(verdict).toMatch(/\+\S+ MiB\/h 95 % interval \+\S+ MiB\/h to \+\S+ MiB\/h/);
      // Too short to measure growth of the ledgers' parts, so the kernel's parts are used.
      const parts = await words(part(page, "Growth by part"));
      expect(parts).toMatch(/anonymous \S+ MiB \+\S+ MiB\/h/);
      const rules = part(page, "Evidence").getByRole("listitem");
      await expect.poll(() => rules.count()).toBe(said.evidence.length);
      await expect.poll(() => words(rules.first())).toMatch(/^leak /);
      const suspects = page.getByLabel(/^Suspect \d+$/);
      await expect.poll(() => suspects.count()).toBe(said.suspects.length);
      for (const { advice } of said.suspects) {
        for (const { id, text } of advice) {
          await expect.poll(() => words(part(page, "Advice"))).toContain(`${text} ${id}`);
        }
      }
      await expect.poll(() => words(part(page, "Advice"))).toMatch(/Before .+ After /);
      for (const limit of said.limits) {
        await expect.poll(() => words(part(page, "What could not be seen"))).toContain(limit);
      }
    }));

  test("the header shows the verdict and links to the tab", () =>
    using(open(PHONE), async (page) => {
      await expect.poll(() => words(page.locator("header"))).toContain(said.verdict.summary);
      await page.getByRole("button", { name: "Why, and what to do" }).click();
      await part(page, "Verdict").waitFor();
      await expect
        .poll(async () => (await page.locator("#views").boundingBox())?.y ?? -1)
        .toBeLessThan(PHONE.viewport.height);
    }));

  test("a suspect: own frames, all frames, holder, by age and over time", () =>
    using(open(), async (page) => {
      await openTab(page);
      const json = said.suspects.find(({ stack }) => stack.some((f) => f.function === "login"));
      const suspect = part(page, `Suspect ${json?.rank}`);
      const frames = suspect.locator(".suspect-stack > .stack-frames");
      await expect
        .poll(() => words(frames))
        .toBe("login leaky.py:5 handle leaky.py:9 <module> leaky.py:14");
      await suspect.getByText(/^Full stack, \d+ frames$/).click();
      await expect.poll(() => words(suspect)).toContain("decoder.py");
      const holder = said.suspects.find(({ rank }) => rank === json?.rank)?.holder;
      expect(holder?.path).toContain("sessions");
      await expect
        .poll(() => words(suspect.locator(".held")))
        .toMatch(/sessions a dict of \S+ entries/);
      const bars = suspect.getByRole("img", { name: /older than/ });
      await expect.poll(() => bars.locator("i").count()).toBe(json?.ages.length);
      const course = suspect.getByRole("img", { name: / at \+/ });
      const points = (await course.locator("polyline").getAttribute("points"))?.split(" ");
      expect(points).toHaveLength(json?.history.length ?? 0);
    }));

  test("the keyboard opens it; nothing needs sideways scrolling, dark or light, on a phone", () =>
    using(open(PHONE), async (page) => {
      await page.keyboard.press("6");
      await part(page, "Verdict").waitFor();
      await noSidewaysScroll(page);
      await page.keyboard.press("t");
      await noSidewaysScroll(page);
      await expect.poll(() => page.getByLabel("Search functions and files").count()).toBe(0);
    }));
});

/** The document in the page: what `diagnose` prints for some evidence, with another verdict if one is given. */
function openDiagnosis(evidence: string, change: Partial<DiagnosisJson> = {}): Promise<OpenPage> {
  const diagnosis = { ...diagnose(evidenceOf(evidence)), ...change };
  return openReport({ ...serviceReport(), diagnosis: diagnosisPage(diagnosis) });
}

describe("every verdict", () => {
  test("a steady program has no suspect and nothing to fix", () =>
    using(openDiagnosis("anonRssBytes 60\nsite parse churns 30"), async (page) => {
      await openTab(page);
      await expect.poll(() => words(part(page, "Verdict"))).toContain("steady");
      await expect.poll(() => words(part(page, "Suspects"))).toContain("names no allocation site");
      await expect.poll(() => words(part(page, "Advice"))).toContain("nothing to fix");
    }));

  test("insufficient-evidence: what would settle it, without another process's command", () =>
    using(openDiagnosis("minute 0.05\nanonRssBytes 60"), async (page) => {
      await openTab(page);
      const verdict = await words(part(page, "Verdict"));
      expect(verdict).toContain("insufficient-evidence");
      await expect.poll(() => words(part(page, "Advice"))).toContain("Watch longer");
      expect(await words(part(page, "Advice"))).not.toContain("4242");
      const limits = await words(part(page, "What could not be seen"));
      expect(limits).toContain("ends before its first profile");
    }));

  test("a limit, steps, several suspects of two processes", () => {
    const evidence = [
      "anonRssBytes 60 + 2/s",
      "child 43 anonRssBytes 20 + 1/s",
      "site record keeps 2/s",
      "site encode keeps 1/s pid=43",
    ].join("\n");
    const known = diagnose(evidenceOf(evidence));
    const growth = {
      ...known.growth,
      limitBytes: 4 * 2 ** 30,
      msToLimit: 4_980_000,
      bytesPerStep: 4096,
    };
    return using(openDiagnosis(evidence, { growth }), async (page) => {
      await openTab(page);
      const verdict = await words(part(page, "Verdict"));
      expect(verdict).toContain("4.00 GiB reached in 1 h 23 min at this rate");
      expect(verdict).toContain("4.00 KiB of the program's work");
      expect(known.suspects.map(({ pid }) => pid)).toEqual([42, 43]);
      expect(await words(part(page, "Suspect 1"))).not.toContain("process 42");
      await expect.poll(() => words(part(page, "Suspect 2"))).toContain("process 43");
      await expect.poll(() => words(part(page, "Suspect 2"))).toContain("The holder is unknown");
      await expect.poll(() => words(part(page, "Advice"))).toContain("for suspect 1, 2");
    });
  });

  test("functions that add items, and functions that read it after a fork, are distinguished from its creator", async () => {
    const put = `anonRssBytes 40 + 1/s
      site parse keeps 1/s
      holder parse held=40 path=app>.history entries=900 putter=keep`;
    await using(openDiagnosis(put), async (page) => {
      await openTab(page);
      await expect
        .poll(() => words(part(page, "Suspect 1")))
        .toMatch(/stored there; allocated by other suspects.*keep.*\.history/);
      await expect.poll(() => words(part(page, "Suspect 2"))).toContain("parse");
    });
    const read = `anonRssBytes 400
      child 43 rssBytes 400
      child 43 ussBytes 10 + 2/s
      child 43 anonRssBytes 390
      forked 43 5s
      site load fills 100 by 0.1s objects=900000
      site rank passes 3/s pid=43`;
    await using(openDiagnosis(read), async (page) => {
      await openTab(page);
      await expect
        .poll(() => words(part(page, "Suspect 2")))
        .toMatch(
          /become private: 100 % of all reads of objects created before the fork.*process 43.*rank/,
        );
    });
  });

  test("growing object types, also on a phone", () => {
    const type = `app.${"Long".repeat(30)}`;
    const evidence = `anonRssBytes 40 + 1/s\nsite record keeps 1/s\ncensus ${type} 5 + 0.5/s\ncensus str 9`;
    const open = async (options: typeof DESKTOP | typeof PHONE) => {
      const diagnosis = diagnose(evidenceOf(evidence));
      return openReport({ ...serviceReport(), diagnosis: diagnosisPage(diagnosis) }, options);
    };
    const snapshot = async (page: Page) => {
      await openTab(page);
      const rows = part(page, "Objects that grew in number").getByRole("row");
      await expect.poll(() => rows.count()).toBe(2);
      await expect
        .poll(() => words(rows.nth(1)))
        .toMatch(/^app\.Long\S+ 34,603 \+29,360 33\.0 MiB \+28\.0 MiB$/);
      await noSidewaysScroll(page);
    };
    return using(open(DESKTOP), snapshot).then(() => using(open(PHONE), snapshot));
  });

  test("each kind is named, on a page without errors", async () => {
    const diagnosis = diagnose(evidenceOf("anonRssBytes 40 + 1/s\nsite record keeps 1/s"));
    for (const kind of VERDICT_KINDS) {
      const verdict = { ...diagnosis.verdict, kind };
      const page = { ...serviceReport(), diagnosis: diagnosisPage({ ...diagnosis, verdict }) };
      await using(openReport(page), async (page) => {
        await openTab(page);
        await expect.poll(() => words(part(page, "Verdict"))).toContain(kind);
      });
    }
  });

  test("names from outside cannot become markup, and do not break the layout", () => {
    const name = `<img src=x onerror="throw 1">${"long".repeat(80)}`;
    const evidence = "anonRssBytes 40 + 1/s\nsite record keeps 1/s";
    const known = diagnose(evidenceOf(evidence));
    const suspects = known.suspects.map((suspect) => ({
      ...suspect,
      stack: [{ function: name, file: `/srv/${name}.py`, line: 3, kind: "python" as const }],
      holder: { path: [name, name], type: name, retainedBytes: 5, entries: 1 },
      history: [],
      ages: [],
    }));
    const diagnosis = { ...known, suspects, limits: [name] };
    const report = { ...serviceReport(), diagnosis: diagnosisPage(diagnosis) };
    return using(openReport(report, PHONE), async (page) => {
      await openTab(page);
      await expect.poll(() => words(part(page, "Suspect 1"))).toContain(name);
      await expect.poll(() => words(part(page, "Suspect 1"))).toContain("Ages are unknown");
      await noSidewaysScroll(page);
    });
  });

  test("a report without a verdict has no such tab", () =>
    using(openReport(serviceReport()), async (page) => {
      await expect.poll(() => page.getByRole("tab").count()).toBe(5);
      await page.keyboard.press("6");
      expect(
        await page.getByRole("tab", { name: "Flame graph" }).getAttribute("aria-selected"),
      ).toBe("true");
    }));
});
