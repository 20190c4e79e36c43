/** fleetbench: a folder of labelled fleets is read, judged and scored, and what is wrong in it ends in one line. */
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { RULES } from "../fleetbench/answers.mjs";
import { fleetsIn, readFleet, writeFleet } from "../fleetbench/folder.mjs";
import { atPrecision, scoreFleet, totalsOf } from "../fleetbench/score.mjs";
import { removeScratch, scratch } from "./run.js";

afterAll(removeScratch);

const HOUR = 3_600_000;
const END = 2_000_000_000_000;
const DEPLOY = END - 60 * HOUR;
const LIMIT = 2 ** 30;
const STEP = HOUR / 6;

interface Life {
  readonly process: string;
  readonly service: string;
  readonly version: string;
  readonly instance: string;
  readonly startedMs: number;
  readonly endedMs: number | null;
  readonly limitBytes: number;
}

/**
 * Three instances of each service, deployed once; `shop` leaks 20 % of its limit a day from version 2 on, each instance or only
 * `leaking`.
 */
function lives(): Life[] {
  return ["shop", "mail"].flatMap((service) =>
    [0, 1, 2].flatMap((index) =>
      ["1", "2"].map((version) => ({
        process: `${service}-${index}-${version}`,
        service,
        version,
        instance: `${service}-${index}`,
        startedMs: version === "1" ? END - 168 * HOUR : DEPLOY + index * STEP,
        endedMs: version === "1" ? DEPLOY + index * STEP : null,
        limitBytes: LIMIT,
      })),
    ),
  );
}

/** A small deviation that differs between readings and repeats in every run. */
const deviation = (row: number): number => ((row * 7919) % 101) * 1e4;

function write(
  folder: string,
  changes: Readonly<Record<string, string>> = {},
  leaking?: readonly string[],
): void {
  const readings = ["process,timeMs,rssBytes,requestsPerSecond"];
  const sites = ["process,timeMs,liveBytes,stack"];
  for (const { process, service, version, instance, startedMs, endedMs } of lives()) {
    for (let time = startedMs + STEP, row = 0; time < (endedMs ?? END); time += STEP, row++) {
      const leaked =
        service === "shop" && version === "2" && (leaking?.includes(instance) ?? true)
          ? (0.2 * LIMIT * (time - startedMs)) / (24 * HOUR)
          : 0;
      readings.push(`${process},${time},${Math.round(2e8 + leaked + deviation(row))},20`);
      if (row % 6 === 0) {
        sites.push(`${process},${time},${Math.round(leaked + 1e6)},keep shop.py:7;main shop.py:20`);
        sites.push(`${process},${time},30000000,load tables.py:3;main shop.py:18`);
      }
    }
  }
  const label = { leak: false, cause: "steady", limitBytes: LIMIT };
  const leak = {
    ...{ leak: true, cause: "version", version: "2", startMs: DEPLOY, limitBytes: LIMIT },
    ...{ bytesPerDay: 0.2 * LIMIT, culprit: { file: "shop.py", functions: ["keep"] } },
    ...(leaking === undefined ? {} : { instances: leaking }),
  };
  const files = {
    "fleet.json": JSON.stringify({ endMs: END, processes: lives() }),
    "expect.json": JSON.stringify({ services: { shop: leak, mail: label } }),
    "readings.csv": readings.join("\n"),
    "sites.csv": sites.join("\n"),
    ...changes,
  };
  mkdirSync(folder, { recursive: true });
  for (const [name, text] of Object.entries(files)) {
    writeFileSync(join(folder, name), text);
  }
}

describe("a folder of labelled fleets", () => {
  test("is read, judged and scored; written again, it gets the same scores", () => {
    const folder = join(scratch(), "fleets");
    write(join(folder, "one"));
    expect(fleetsIn(folder)).toEqual(["one"]);
    const own = RULES.get("tidemark");
    const fleet = readFleet(folder, "one");
    const rows = scoreFleet(fleet, own as NonNullable<typeof own>);
    expect(totalsOf(rows)).toMatchObject({
      ...{ services: 2, leaks: 1, precision: 1, recall: 1, versionRight: 1, culpritRight: 1 },
      ...{ falseRegressions: 0, falseAtAnyTime: 0 },
    });
    const [first] = fleet.processes;
    first?.holders.push({
      line: { function: "keep", file: "shop.py", line: 7, kind: "python" },
      ...{ path: ["module shop", "kept"], type: "dict", bound: 500 },
    });
    const copy = join(scratch(), "copy");
    writeFleet(copy, fleet);
    const again = readFleet(copy, "one");
    expect(again.processes[0]?.holders).toEqual(first?.holders);
    expect(scoreFleet(again, own as NonNullable<typeof own>)).toEqual(rows);
  });

  test("which instances leak is compared with the label", () => {
    const own = RULES.get("tidemark") as NonNullable<ReturnType<typeof RULES.get>>;
    const folder = join(scratch(), "some");
    write(join(folder, "one"), {}, ["shop-1"]);
    const fleet = readFleet(folder, "one");
    expect(totalsOf(scoreFleet(fleet, own)).instancesRight).toBe(1);
    const { shop } = fleet.labels;
    const wrong = {
      ...fleet,
      labels: { ...fleet.labels, shop: { ...shop, instances: ["shop-2"] } },
    };
    expect(totalsOf(scoreFleet(wrong as typeof fleet, own)).instancesRight).toBe(0);
  });

  test.each([
    ["no such folder", {}, "absent", /absent does not exist/],
    ["a file for a folder", {}, "fleets/one/fleet.json", /fleet\.json is a file/],
    ["a list of null", { "fleet.json": "null" }, "fleets", /fleet\.json: needs a JSON object/],
    ["no label file", { "expect.json": "" }, "fleets", /expect\.json/],
    ["a list without processes", { "fleet.json": '{"endMs": 1}' }, "fleets", /needs endMs/],
    [
      "a process without a start",
      { "fleet.json": '{"endMs": 1, "processes": [{"process": "a", "service": "mail"}]}' },
      "fleets",
      /fleet\.json: process a needs startedMs/,
    ],
    [
      "a process that is listed twice",
      { "fleet.json": JSON.stringify({ endMs: END, processes: [...lives(), lives()[0]] }) },
      "fleets",
      /shop-0-1 is listed twice/,
    ],
    [
      "a label of an unknown service",
      { "expect.json": '{"services": {"other": {"leak": false}}}' },
      "fleets",
      /no process of service other/,
    ],
    [
      "a label of a leak without its start",
      { "expect.json": '{"services": {"mail": {"leak": true, "version": "2"}}}' },
      "fleets",
      /mail leaks, so it needs startMs/,
    ],
    [
      "a holder without its line",
      {
        "fleet.json": JSON.stringify({
          endMs: END,
          processes: lives().map((life) => ({ ...life, holders: [{ path: [], type: "dict" }] })),
        }),
      },
      "fleets",
      /a holder needs the texts line and type/,
    ],
    [
      "a time that is not a number",
      { "readings.csv": "\nshop-0-1,x,1," },
      "fleets",
      /csv:2: needs/,
    ],
    ["an unknown process", { "readings.csv": "\nother,1,1," }, "fleets", /no process other/],
    [
      "times that descend",
      { "readings.csv": "\nshop-0-1,9,1,\nshop-0-1,8,1," },
      "fleets",
      /csv:3: the times/,
    ],
    ["a frame without a line", { "sites.csv": "\nshop-0-1,1,1,main" }, "fleets", /a frame is/],
  ])("%s ends in one line", (_name, changes, name, message) => {
    const folder = join(scratch(), "hostile");
    rmSync(folder, { recursive: true, force: true });
    write(join(folder, "fleets", "one"), changes);
    const read = () => {
      for (const each of fleetsIn(join(folder, name))) {
        readFleet(join(folder, name), each);
      }
    };
    expect(read).toThrow(message);
  });
});

test("a simple rule is compared with the threshold that makes it as precise", () => {
  const row = (isLeak: boolean, last: number, after: [number, number][] = []) =>
    ({ isLeak, figures: { last, after } }) as never;
  const rows = [
    row(true, 9, [
      [1, 2],
      [6, 7],
    ]),
    row(true, 4, [[1, 4]]),
    row(false, 5),
    row(false, 1),
  ];
  expect(atPrecision(rows, 0.6)).toEqual({
    ...{ threshold: 1, precision: 2 / 3, recall: 1, hoursToDetection: 1 },
  });
  expect(atPrecision(rows, 0.9)).toEqual({
    ...{ threshold: 5, precision: 1, recall: 0.5, hoursToDetection: 6 },
  });
  expect(atPrecision(rows, null)).toBeNull();
});
