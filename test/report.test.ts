/** The report page in a real browser, opened from disk as a reader would: its text and its flame graph. */

import { copyFileSync, mkdtempSync, truncateSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { linesDocument, reportDocument } from "../src/inspect/index.js";
import { itemAt } from "../src/model/base/columns.js";
import { formatBytes } from "../src/model/base/numbers.js";
import type { ProfileSnapshot } from "../src/model/profile/profile.js";
import { openRecording } from "../src/record/index.js";
import { runHere } from "./import/imported.js";
import {
  boxOf,
  clickFlame,
  closeBrowser,
  details,
  drawn,
  folder,
  noProgress,
  openBrowser,
  openReport,
  ROW,
  root,
  using,
  words,
} from "./report_page.js";
import { serviceReport } from "./service_report.js";

beforeAll(openBrowser);
afterAll(closeBrowser);

describe("the text of the page", () => {
  test("the headline names peak, end, growth, top sites and limits", () =>
    using(openReport(serviceReport()), async (page) => {
      const head = page.locator("header");
      for (const said of [
        "+8:26",
        "+1,530 MiB/h",
        "256 MiB",
        "remember",
        "history.py:41",
        "50 %",
      ]) {
        await expect.poll(() => words(head)).toContain(said);
      }
      await page.getByText("What could not be seen").click();
      await expect.poll(() => words(head)).toContain("started with a cleared environment");
      await expect.poll(() => page.title()).toBe("serve.tidemark - Tidemark");
    }));

  test("a run that freed its memory starts at its largest snapshot, and an empty end is reported", () => {
    const report = serviceReport();
    const last = itemAt(report.snapshots, report.snapshots.length - 1);
    const nothing = new Float64Array(last.sites.length);
    const sites = {
      ...last.sites,
      liveBytes: nothing,
      liveObjects: nothing,
      liveVariance: nothing,
    };
    const end: ProfileSnapshot = { ...last, timeMs: last.timeMs + 1000, sites };
    return using(openReport({ ...report, snapshots: [...report.snapshots, end] }), async (page) => {
      const head = page.locator("header");
      await expect.poll(() => words(head)).toContain("256 MiB (50 %) live at +10:00 from remember");
      await expect.poll(() => words(head)).toMatch(/512 MiB ± \S+ MiB at \+10:00/);
      await page.getByLabel("At", { exact: true }).selectOption({ label: "+10:01 (end)" });
      await expect
        .poll(() => words(head))
        .toContain("Nothing that was sampled is live at the end.");
      expect(await words(head)).not.toMatch(/\(0\S* %\) live/);
      await page.getByLabel("At", { exact: true }).selectOption({ index: 0 });
      await expect.poll(() => words(head)).toContain("live at +12.0 s from read_weights");
    });
  });

  test("missing PSS, missing samples and missing readings are named", () =>
    using(openReport(serviceReport({ withPss: false, withSamples: false })), async (page) => {
      const body = page.locator("body");
      await expect.poll(() => words(body)).toContain("PSS could not be read");
      for (const tab of ["Flame graph", "Sites", "Ages", "Lifetimes"]) {
        await page.getByRole("tab", { name: tab }).click();
        await expect.poll(() => words(page.getByRole("tabpanel"))).toContain("No samples");
      }
    }));

  test("a title and names from outside cannot become markup", () => {
    const report = serviceReport();
    const name = '</script><img src=x onerror="throw 1"><!--';
    const strings = report.tables.strings.map((text) => (text === "remember" ? name : text));
    return using(
      openReport({ ...report, title: name, tables: { ...report.tables, strings } }),
      async (page) => {
        await expect.poll(() => page.title()).toContain(name);
        await page.getByRole("tab", { name: "Sites" }).click();
        await expect.poll(() => words(page.getByRole("tabpanel"))).toContain(name);
      },
    );
  });
});

describe("flame graph", () => {
  test("a click finds its rectangle, zooms to it, and the breadcrumb leads back", () =>
    using(openReport(serviceReport()), async (page) => {
      await clickFlame(page, 5, 0.25);
      await expect.poll(() => words(details(page))).toContain("remember");
      await expect.poll(() => words(page.getByTestId("source"))).toBe("/srv/app/history.py:41");
      await expect.poll(() => words(page.getByTestId("selected-value"))).toBe("256 MiB");
      await expect
        .poll(() => page.getByTestId("source-link").getAttribute("href"))
        .toBe("vscode://file/srv/app/history.py:41");
      // Zoomed: what was at the left quarter now fills the width.
      await clickFlame(page, 5, 0.95);
      await expect.poll(() => words(details(page))).toContain("remember");
      await page.getByRole("navigation", { name: "Zoom" }).getByText("all live bytes").click();
      await clickFlame(page, 4, 0.7);
      await expect.poll(() => words(details(page))).toContain("read_weights");
      await expect.poll(() => words(details(page))).toContain("native 100 %");
    }));

  test("the link to the editor follows the reader's template, and runs no script", () =>
    using(openReport(serviceReport()), async (page) => {
      await clickFlame(page, 5, 0.25);
      await page.locator(".link-template summary").click();
      const field = page.getByLabel("Link template with {file} and {line}");
      await field.fill("idea://open?file={file}&line={line}");
      await expect
        .poll(() => page.getByTestId("source-link").getAttribute("href"))
        .toBe("idea://open?file=/srv/app/history.py&line=41");
      await field.fill("javascript:alert(1)//{file}");
      await expect.poll(() => page.getByTestId("source-link").count()).toBe(0);
    }));

  test("search shows the matched share and steps through the matches", () =>
    using(openReport(serviceReport()), async (page) => {
      await drawn(page);
      await page.keyboard.press("/");
      await page.keyboard.type("model.py");
      const found = page.locator(".found");
      // load_model twice and read_weights and embed: 128 + 64 + 16 of 512 MiB.
      await expect.poll(() => words(found)).toContain("4 found, 41 % of the width");
      await page.getByRole("button", { name: "Next match" }).click();
      await expect.poll(() => words(details(page))).toContain("load_model");
      await page.getByLabel("Search functions and files").fill("/(/");
      await expect.poll(() => words(found)).toContain("invalid pattern");
    }));

  test("reversed, allocating functions come first and their callers below", () =>
    using(openReport(serviceReport()), async (page) => {
      await drawn(page);
      await page.keyboard.press("r");
      await clickFlame(page, 1, 0.25);
      await expect.poll(() => words(details(page))).toContain("remember");
      await clickFlame(page, 5, 0.5);
      await expect.poll(() => words(details(page))).toContain("<module>");
      await expect.poll(() => words(page.getByTestId("selected-value"))).toBe("256 MiB");
    }));

  test("roots below: the same graph, upside down", () =>
    using(openReport(serviceReport()), async (page) => {
      await page.getByRole("button", { name: "Flames" }).click();
      const flame = page.getByTestId("flame");
      await drawn(page);
      const { width, height } = await boxOf(flame);
      await flame.click({ position: { x: width / 4, y: height - 5 * ROW - ROW / 2 } });
      await expect.poll(() => words(details(page))).toContain("remember");
    }));

  test("figures and filters change what is shown", () =>
    using(openReport(serviceReport()), async (page) => {
      const whole = async () => {
        await clickFlame(page, 0, 0.5);
        return words(page.getByTestId("selected-value"));
      };
      await expect.poll(() => whole()).toBe("512 MiB");
      await page.getByRole("button", { name: "Allocated" }).click();
      await expect.poll(whole).toBe("13.2 GiB");
      await page.getByRole("button", { name: "Live" }).click();
      await page.getByLabel("Thread", { exact: true }).selectOption({ label: "pool-0 4247" });
      await expect.poll(whole).toBe("56.0 MiB");
      await page.getByLabel("Label", { exact: true }).selectOption("endpoint=/embed");
      await expect.poll(whole).toBe("16.0 MiB");
      await page.getByLabel("Label", { exact: true }).selectOption("");
      await page.getByLabel("Thread", { exact: true }).selectOption("");
      await page.getByLabel("Allocator", { exact: true }).selectOption("mapped");
      await expect.poll(whole).toBe("64.0 MiB");
      await page.getByLabel("Allocator", { exact: true }).selectOption("");
      await page.getByLabel("Process", { exact: true }).selectOption({ index: 2 });
      await expect.poll(() => words(page.getByRole("tabpanel"))).toContain("pass these filters");
    }));

  test("the keyboard walks, zooms in and out, and switches views", () =>
    using(openReport(serviceReport()), async (page) => {
      await drawn(page);
      await page.getByTestId("flame").focus();
      const shows = (name: string) => expect.poll(() => words(details(page))).toContain(name);
      await page.keyboard.press("ArrowDown");
      await shows("Everything");
      for (const name of ["<module>", "main", "run"]) {
        await page.keyboard.press("ArrowDown");
        await shows(name);
      }
      await page.keyboard.press("ArrowRight");
      await shows("load_model");
      await page.keyboard.press("ArrowDown");
      await shows("read_weights");
      await page.keyboard.press("Enter");
      const crumbs = page.getByRole("navigation", { name: "Zoom" });
      await expect.poll(() => words(crumbs)).toContain("read_weights");
      await page.keyboard.press("Escape");
      await expect.poll(() => words(crumbs)).not.toContain("read_weights");
      await page.keyboard.press("Home");
      await expect.poll(() => words(crumbs)).toBe("all live bytes");
      await page.keyboard.press("2");
      await expect
        .poll(() => page.getByRole("tab", { name: "Sites" }).getAttribute("aria-selected"))
        .toBe("true");
      await page.keyboard.press("?");
      await expect.poll(() => words(page.getByRole("dialog"))).toContain("Keyboard");
      await page.keyboard.press("Escape");
      await expect.poll(() => page.getByRole("dialog").count()).toBe(0);
    }));
});

describe("a file of another tool", () => {
  /** The report of a sample beside its program, which it names by a relative path. */
  async function importedReport(name: string, program: string | null) {
    const place = mkdtempSync(join(folder, "imported-"));
    copyFileSync(join(root, "test/data/import", name), join(place, name));
    if (program !== null) {
      copyFileSync(join(root, "test/data/import/sampled.py"), join(place, program));
    }
    await runHere("import", join(place, name));
    const recording = openRecording(join(place, `${name}.tidemark`));
    const report = await reportDocument(recording, noProgress, { source: true });
    return { recording, report };
  }

  test.each(["memray-13.bin", "memray-python.bin"])(
    "%s: the figures of lines, one thread, the source beside it",
    async (name) => {
      const { recording, report } = await importedReport(name, "sampled.py");
      const lines = linesDocument(recording, "end", undefined).lines;
      await using(openReport(report), async (page) => {
        const head = await words(page.locator("header"));
        for (const { liveBytes, function: name } of lines.slice(0, 2)) {
          expect(head).toMatch(new RegExp(`${formatBytes(liveBytes)} \\(.*?${name}`));
        }
        await expect.poll(() => page.getByLabel("Thread", { exact: true }).count()).toBe(0);
        await page.getByRole("tab", { name: "Source" }).click();
        const view = page.getByRole("tabpanel");
        await expect.poll(() => words(view)).toContain("sampled.py");
        const bar = view.locator(".source-allocates .source-bar span").first();
        await expect
          .poll(() => bar.getAttribute("title"))
          .toMatch(name.includes("python") ? /^Python .*, native / : /allocator is unknown$/);
      });
    },
  );

  test("without RSS: live bytes over time, and the peak of each site", async () => {
    const { recording, report } = await importedReport("massif.out", null);
    const [first] = linesDocument(recording, "end", undefined).lines;
    await using(openReport(report), async (page) => {
      await expect.poll(() => words(page.locator(".timeline-legend"))).toMatch(/^live bytes/);
      expect(await words(page.locator("figure.timeline"))).not.toMatch(/RSS|PSS/);
      await page.getByRole("tab", { name: "Sites" }).click();
      const peak = formatBytes(first?.liveBytesAtPeak ?? 0);
      await expect.poll(() => words(page.getByRole("tabpanel"))).toContain(peak);
    });
  });

  test("without its program: the page gives the reason", async () => {
    const { report } = await importedReport("memray-13.bin", null);
    await using(openReport(report), async (page) => {
      await expect.poll(() => page.getByRole("tab", { name: "Source" }).count()).toBe(0);
      await page.locator(".limits summary").click();
      await expect
        .poll(() => words(page.locator(".limits")))
        .toMatch(
          /no source text: \S*\/sampled\.py is not a readable text file.*folder that sampled\.py is relative to/,
        );
    });
  });

  test("cut off: what is missing is unknown, not 0", async () => {
    const place = mkdtempSync(join(folder, "imported-"));
    const path = join(place, "memray-13.bin");
    copyFileSync(join(root, "test/data/import/memray-13.bin"), path);
    await runHere("import", path);
    copyFileSync(`${path}.tidemark`, `${path}.whole`);
    truncateSync(`${path}.tidemark`, 1000);
    const cut = openRecording(`${path}.tidemark`);
    const lost = ["live", "peak", "allocated", "objects", "python"];
    expect(cut.meta.imported?.unknown).toEqual(expect.arrayContaining(lost));
    expect(await runHere("summary", `${path}.tidemark`)).toMatch(
      /incomplete[\s\S]*Live +unknown\n/,
    );
    expect(await runHere("lines", `${path}.tidemark`)).toMatch(
      /imported from memray .*, is incomplete: the memory figures by line/,
    );
    const diff = await runHere("diff", `${path}.tidemark`, `${path}.whole`);
    expect(diff).not.toMatch(/0 B/);
    await using(
      openReport(await reportDocument(cut, noProgress, { source: true })),
      async (page) => {
        const body = await words(page.locator("body"));
        expect(body).toMatch(/This recording, imported from memray \(format 13\), has no bytes/);
        expect(body).not.toMatch(/does not record|samples in this recording/);
      },
    );
  });
});
