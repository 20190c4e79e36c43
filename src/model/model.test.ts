import { describe, expect, it } from "vitest";
import {
  type CallTree,
  calleesBelow,
  callersBelow,
  childrenOf,
  type Granularity,
  stackFigures,
} from "./call_tree.js";
import { frameName } from "./frame_text.js";
import { alignProfiles, mergeProfiles, siteDifferences } from "./merge.js";
import { profileOf } from "./profile.fixture.js";
import { Domain, type Profile, type ProfileTables } from "./profile.js";
import { selectSites } from "./site_filter.js";
import { ProfileTablesBuilder } from "./tables_builder.js";

/** A tree as text: "main 15 0 [load 15 12 [...]]", totals and own figures side by side. */
function textOf(tables: ProfileTables, tree: CallTree, node = 0): string {
  const name = node === 0 ? "all" : frameName(tables, tree.frame[node]!);
  const figures = tree.total
    .map((total, index) => `${total[node]}/${tree.own[index]![node]}`)
    .join(" ");
  const children = Array.from(childrenOf(tree, node), (child) => textOf(tables, tree, child));
  return `${name} ${figures}${children.length > 0 ? ` [${children.join(", ")}]` : ""}`;
}

function calleesText(profile: Profile, granularity: Granularity = "line"): string {
  return textOf(profile, calleesBelow(profile, [stackFigures(profile, "liveBytes")], granularity));
}

describe("calleesBelow", () => {
  it("adds up from the entry, the largest first, without what has nothing", () => {
    const profile = profileOf(`
      main 1
      main;parse 4
      main;load;read 10
      main;load 2 thread=other
      main;load;read 5 domain=native
      main;idle;nothing 0
    `);
    expect(calleesText(profile)).toBe("all 22/0 [main 22/1 [load 17/2 [read 15/15], parse 4/4]]");
  });

  it("tells lines apart, or takes a function's together", () => {
    const profile = profileOf(`
      main;load@a.py:3;f 1
      main;load@a.py:4;f 2
      main;load@b.py:3;f 4
    `);
    expect(calleesText(profile)).toBe(
      "all 7/0 [main 7/0 [load 4/0 [f 4/4], load 2/0 [f 2/2], load 1/0 [f 1/1]]]",
    );
    expect(calleesText(profile, "function")).toBe(
      "all 7/0 [main 7/0 [load 4/0 [f 4/4], load 3/0 [f 3/3]]]",
    );
  });

  it("keeps native code without symbols apart by address", () => {
    const profile = profileOf(`
      libx.so+10 1
      libx.so+20 2
    `);
    expect(calleesText(profile, "function")).toBe("all 3/0 [libx.so+0x20 2/2, libx.so+0x10 1/1]");
  });

  it("keeps figures of empty stacks at the root, and bears an empty profile", () => {
    const builder = new ProfileTablesBuilder();
    const profile = profileOf("main 5", builder);
    profile.sites.stack[0] = 0;
    expect(calleesText(profile)).toBe("all 5/5");
    expect(calleesText(profileOf(""))).toBe("all 0/0");
  });

  it("holds two figures side by side: a differential tree", () => {
    const builder = new ProfileTablesBuilder();
    const before = profileOf("main;old 5\nmain;same 3", builder);
    const after = profileOf("main;same 4\nmain;new 9", builder);
    const length = after.stacks.length;
    const padded = new Float64Array(length);
    padded.set(stackFigures(before, "liveBytes"));
    const tree = calleesBelow(after, [padded, stackFigures(after, "liveBytes")]);
    expect(textOf(after, tree)).toBe(
      "all 8/0 13/0 [main 8/0 13/0 [new 0/0 9/9, old 5/5 0/0, same 3/3 4/4]]",
    );
  });
});

describe("callersBelow", () => {
  const profile = profileOf(`
    main;load;read 10
    main;parse;read 4
    read 1
    main;load 3
  `);
  const figures = [stackFigures(profile, "liveBytes")];

  it("begins with what allocated", () => {
    expect(textOf(profile, callersBelow(profile, figures))).toBe(
      "all 18/0 [read 15/1 [load 10/0 [main 10/10], parse 4/0 [main 4/4]], load 3/0 [main 3/3]]",
    );
  });

  it("does not split what is below a share of all, and loses no figure", () => {
    const tree = callersBelow(profile, figures, "line", 0.5);
    expect(tree.cut).toBe(true);
    expect(textOf(profile, tree)).toBe(
      "all 18/0 [read 15/1 [load 10/0 [main 10/10], parse 4/4], load 3/3]",
    );
    expect(callersBelow(profile, figures).cut).toBe(false);
  });
});

describe("selectSites", () => {
  const profile = profileOf(`
    main;load@/srv/Loader.py:3 1 label=endpoint:/x
    main;parse 2 thread=other domain=native label=endpoint:/x,step:1
    main;idle 4 pid=43 label=step:1
  `);
  const bytes = (filter: Parameters<typeof selectSites>[1]) =>
    Array.from(selectSites(profile, filter), (site) => profile.sites.liveBytes[site]);

  it("takes process, thread, allocator, label and text", () => {
    expect(bytes({})).toEqual([1, 2, 4]);
    expect(bytes({ process: 1 })).toEqual([4]);
    expect(bytes({ thread: 1 })).toEqual([2]);
    expect(bytes({ domain: Domain.native })).toEqual([2]);
    expect(bytes({ text: "loader" })).toEqual([1]);
    expect(bytes({ text: "main", process: 0 })).toEqual([1, 2]);
    const endpoint = profile.sites.label[0]!;
    expect(bytes({ label: endpoint })).toEqual([1, 2]);
    const step = profile.sites.label[2]!;
    expect(bytes({ label: step })).toEqual([2, 4]);
    expect(bytes({ label: step, text: "nothing" })).toEqual([]);
  });
});

describe("profiles of different recordings", () => {
  const a = profileOf("main;load 10\nmain;gone 7 variance=9");
  const b = profileOf("other;x 1\nmain;load 15 variance=16\nmain;load 2 pid=43");

  it("add up by content", () => {
    const merged = mergeProfiles([a, b]);
    expect(calleesText(merged)).toBe(
      "all 35/0 [main 34/0 [load 27/27, gone 7/7], other 1/0 [x 1/1]]",
    );
    expect(merged.processes.map(({ pid }) => pid)).toEqual([42, 43]);
    expect(merged.sites.length).toBe(4);
    expect(merged.cohorts).toEqual(a.cohorts);
    expect(merged.sites.cohortBytes.reduce((sum, bytes) => sum + bytes, 0)).toBe(35);
    expect(calleesText(mergeProfiles([a]))).toBe(calleesText(a));
  });

  it("subtract by content, with the variance of both", () => {
    const { tables, looks } = alignProfiles([a, b]);
    const differences = siteDifferences(looks[0]!, looks[1]!);
    const rows = Array.from({ length: differences.length }, (_, row) => [
      frameName(tables, tables.stacks.frame[differences.stack[row]!]!),
      tables.processes[differences.process[row]!]!.pid,
      differences.liveBytes[row],
      differences.liveVariance[row],
    ]);
    expect(rows).toEqual([
      ["load", 42, 5, 116],
      ["gone", 42, -7, 9],
      ["x", 42, 1, 1],
      ["load", 43, 2, 4],
    ]);
  });
});

describe("large profiles", () => {
  it("are walked whole: a million stacks", () => {
    const builder = new ProfileTablesBuilder();
    const frames = Array.from({ length: 1000 }, (_, index) =>
      builder.frame(builder.string(`f${index}`), 0, 1, 1, 0, 0),
    );
    let stack = 0;
    for (let index = 1; index < 1_000_000; index++) {
      // Runs of a hundred calls, each from somewhere below.
      const parent = index % 100 === 0 ? Math.floor(index / 200) : stack;
      stack = builder.stack(parent, frames[(index * 7919) % 1000]!);
    }
    const tables = builder.tables();
    const figure = new Float64Array(tables.stacks.length).fill(1);
    const tree = calleesBelow(tables, [figure]);
    expect(tree.total[0]![0]).toBe(tables.stacks.length);
    expect(tree.length).toBe(tables.stacks.length);
  });
});
