import { describe, expect, it } from "vitest";
import { float64At } from "../base/columns.js";
import { profileOf } from "./profile.fixture.js";
import type { Profile } from "./profile.js";
import {
  conditionOn,
  groupRows,
  labelChoices,
  labelKeys,
  type RowCondition,
  rowColumn,
  selectSites,
  valueChoices,
  withCondition,
} from "./row_filter.js";

const profile = profileOf(`
  main;load@/srv/Loader.py:3 1 label=endpoint:/x
  main;parse 2 thread=other domain=native label=endpoint:/x,step:1
  main;idle 4 pid=43 label=step:1
`);

function liveBytes({ sites }: Profile, rows: Iterable<number>): number[] {
  return Array.from(rows, (row) => float64At(sites.liveBytes, row));
}

function where(text: string, of = profile): number[] {
  const conditions = text
    .split(" ")
    .filter((word) => word !== "")
    .map((word) => {
      const [, key = "", value = ""] = /^(.*?)=(.*)$/.exec(word) ?? [];
      return { key, value };
    });
  return liveBytes(of, selectSites(of, of.sites, conditions));
}

function groups(key: string, of = profile): Record<string, number[]> {
  const rows = groupRows(rowColumn(of, key), of.sites);
  return Object.fromEntries([...rows].map(([name, each]) => [name, liveBytes(of, each)]));
}

describe("selectSites", () => {
  it("selects by process, thread, allocator and label", () => {
    expect(where("")).toEqual([1, 2, 4]);
    expect(where("process=43")).toEqual([4]);
    expect(where("process=app.py")).toEqual([1, 2, 4]);
    expect(where("thread=other")).toEqual([2]);
    expect(where("domain=native")).toEqual([2]);
    expect(where("thread=other process=43")).toEqual([]);
    expect(where("label=/x")).toEqual([1, 2]);
    expect(where("label=endpoint=/x")).toEqual([1, 2]);
    expect(where("endpoint=/x step=1")).toEqual([2]);
    expect(where("step=1")).toEqual([2, 4]);
    expect(where("endpoint=/y")).toEqual([]);
  });

  it("selects a thread by its tid, and the main thread by 'main'", () => {
    const [main, other] = profile.threads;
    expect(where(`thread=${other?.tid}`)).toEqual([2]);
    expect(where(`thread=${main?.tid}`)).toEqual([1]);
    expect(where("thread=main")).toEqual([1, 4]);
  });

  it("uses the rank of the process", () => {
    const ranks = profile.processes.map((process, rank) => ({ ...process, rank }));
    expect(where("rank=1", { ...profile, processes: ranks })).toEqual([4]);
    expect(where("rank=1")).toEqual([]);
  });

  it("the inner value of a key wins", () => {
    const nested = profileOf(`
      a 1 label=endpoint:/x
      b 2 label=endpoint:/x,endpoint:/y
      c 4 label=endpoint:/x,step:1
      d 8 label=endpoint:/y,endpoint:/x,step:1
    `);
    const choices = labelChoices(nested);
    expect(choices).toEqual(["endpoint=/x", "endpoint=/y", "step=1"]);
    expect(choices.map((choice) => where(`label=${choice}`, nested))).toEqual([
      [1, 4, 8],
      [2],
      [4, 8],
    ]);
  });
});

describe("groupRows", () => {
  it("puts each row into one group; rows without a value into that without a name", () => {
    expect(groups("thread")).toEqual({ main: [1, 4], other: [2] });
    expect(groups("process")).toEqual({ "42 python app.py": [1, 2], "43 python app.py": [4] });
    expect(groups("domain")).toEqual({ python: [1, 4], native: [2] });
    expect(groups("endpoint")).toEqual({ "/x": [1, 2], "": [4] });
    expect(groups("rank")).toEqual({ "": [1, 2, 4] });
  });

  it("groups by all labels of a row, in whatever order they were set", () => {
    const both = profileOf(`
      a 1 label=endpoint:/x,tenant:acme
      b 2 label=tenant:acme,endpoint:/x
      c 4
    `);
    expect(groups("label", both)).toEqual({ "endpoint=/x, tenant=acme": [1, 2], "": [4] });
  });
});

describe("valueChoices", () => {
  const choices = (key: string, value: string) => valueChoices(profile, { key, value });

  it("lists the values that occur, the nearest first", () => {
    expect(choices("thread", "othr")).toEqual(["other", "main"]);
    expect(choices("process", "44")).toEqual(["42 python app.py", "43 python app.py"]);
    expect(choices("domain", "nativ")).toEqual(["native", "python", "mapped"]);
    expect(choices("label", "y")).toEqual(["endpoint=/x", "step=1"]);
    expect(choices("rank", "0")).toEqual([]);
    expect(labelKeys(profile)).toEqual(["endpoint", "step"]);
  });
});

it("changes one condition of a filter", () => {
  const filter: RowCondition[] = [{ key: "thread", value: "main" }];
  const both = withCondition(filter, "domain", "native");
  expect(conditionOn(both, "domain")).toBe("native");
  expect(withCondition(both, "thread", null)).toEqual([{ key: "domain", value: "native" }]);
  expect(conditionOn(filter, "domain")).toBeNull();
});
