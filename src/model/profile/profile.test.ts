import { describe, expect, it } from "vitest";
import { float64At, itemAt, uint8At, uint32At } from "../base/columns.js";
import { present } from "../base/present.js";
import {
  type CallTree,
  calleesBelow,
  callersBelow,
  mainDomains,
  ownFigures,
  stackWeights,
  withDescendants,
} from "./call_tree.js";
import { frameName } from "./frame_text.js";
import { profileOf } from "./profile.fixture.js";
import type { Profile } from "./profile.js";
import { EVERY_ROW, selectSites } from "./row_filter.js";
import { ProfileTablesBuilder } from "./tables_builder.js";

function everything(profile: Profile): { snapshot: Profile; rows: Uint32Array } {
  return { snapshot: profile, rows: selectSites(profile, profile.sites, EVERY_ROW) };
}

/** A tree with the live bytes of `profiles` as text: "main 15/0 [load 15/12 [...]]", total and own, the
 * largest first. */
function textOf(tree: CallTree, profiles: readonly Profile[]): string {
  const tables = present(profiles.at(-1));
  const figures = profiles.map((profile) => {
    const own = ownFigures(tree, profile.sites, everything(profile).rows, "liveBytes");
    return { own, total: withDescendants(tree, own) };
  });
  const size = (node: number) => Math.max(...figures.map(({ total }) => float64At(total, node)));
  const text = (node: number): string => {
    const name = node === 0 ? "all" : frameName(tables, uint32At(tree.frame, node));
    const said = figures
      .map(({ own, total }) => `${float64At(total, node)}/${float64At(own, node)}`)
      .join(" ");
    const children = Array.from(tree.parent.keys())
      .filter((child) => child > 0 && tree.parent[child] === node)
      .sort((a, b) => size(b) - size(a))
      .map(text);
    return `${name} ${said}${children.length > 0 ? ` [${children.join(", ")}]` : ""}`;
  };
  return text(0);
}

function weightsOf(...profiles: Profile[]): Float64Array {
  return stackWeights(present(profiles.at(-1)), profiles.map(everything));
}

function calleesText(profile: Profile): string {
  return textOf(calleesBelow(profile, weightsOf(profile)), [profile]);
}

describe("calleesBelow", () => {
  it("adds up from the entry, largest first, without empty nodes", () => {
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

  it("distinguishes lines", () => {
    const profile = profileOf(`
      main;load@a.py:3;f 1
      main;load@a.py:4;f 2
      main;load@b.py:3;f 4
    `);
    expect(calleesText(profile)).toBe(
      "all 7/0 [main 7/0 [load 4/0 [f 4/4], load 2/0 [f 2/2], load 1/0 [f 1/1]]]",
    );
  });

  it("distinguishes native code without symbols by address", () => {
    const profile = profileOf(`
      libx.so+10 1
      libx.so+20 2
    `);
    expect(calleesText(profile)).toBe("all 3/0 [libx.so+0x20 2/2, libx.so+0x10 1/1]");
  });

  it("keeps values of empty stacks at the root, and accepts an empty profile", () => {
    const builder = new ProfileTablesBuilder();
    const profile = profileOf("main 5", builder);
    profile.sites.stack[0] = 0;
    expect(calleesText(profile)).toBe("all 5/5");
    expect(calleesText(profileOf(""))).toBe("all 0/0");
  });

  it("gives rows the same ids in a builder that continues its tables", () => {
    const before = profileOf("main;load;read 3\nmain;parse 2");
    const builder = new ProfileTablesBuilder(before);
    const after = profileOf("main;parse 5\nmain;load 1\nmain;load;write 7", builder);
    const { strings, frames, stacks } = builder.tables();
    expect(strings.slice(0, before.strings.length)).toEqual(before.strings);
    expect([...stacks.parent.slice(0, before.stacks.length)]).toEqual([...before.stacks.parent]);
    expect([frames.length, stacks.length]).toEqual([
      before.frames.length + 1,
      before.stacks.length + 1,
    ]);
    expect(after.sites.stack[0]).toBe(before.sites.stack[1]);
    expect(calleesText(after)).toBe("all 13/0 [main 13/0 [load 8/1 [write 7/7], parse 5/5]]");
  });

  it("holds two figures side by side: a differential tree", () => {
    const builder = new ProfileTablesBuilder();
    const before = profileOf("main;old 5\nmain;same 3", builder);
    const after = profileOf("main;same 4\nmain;new 9", builder);
    const tree = calleesBelow(after, weightsOf(before, after));
    expect(textOf(tree, [before, after])).toBe(
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

  it("begins with what allocated", () => {
    expect(textOf(callersBelow(profile, weightsOf(profile)), [profile])).toBe(
      "all 18/0 [read 15/1 [load 10/0 [main 10/10], parse 4/0 [main 4/4]], load 3/0 [main 3/3]]",
    );
  });

  it("does not split nodes below a share of the total, and loses no value", () => {
    const tree = callersBelow(profile, weightsOf(profile), 0.5);
    expect(textOf(tree, [profile])).toBe(
      "all 18/0 [read 15/1 [load 10/0 [main 10/10], parse 4/4], load 3/3]",
    );
  });
});

describe("mainDomains", () => {
  it("names the allocator of most of a node and what is below it", () => {
    const profile = profileOf(`
      main;load 10
      main;read 7 domain=native
      main;map 5 domain=mapped
      main;read;parse 6
    `);
    const tree = calleesBelow(profile, weightsOf(profile));
    const main = mainDomains(tree, profile.sites, everything(profile).rows, "liveBytes");
    const named = (name: string) =>
      uint8At(
        main,
        Array.from(tree.frame.keys()).findIndex(
          (node) => node > 0 && frameName(profile, uint32At(tree.frame, node)) === name,
        ),
      );
    expect(["main", "load", "read", "map", "parse"].map(named)).toEqual([0, 0, 1, 2, 0]);
  });
});

describe("large profiles", () => {
  it("are processed completely: a million stacks", () => {
    const builder = new ProfileTablesBuilder();
    const frames = Array.from({ length: 1000 }, (_, index) =>
      builder.frame(builder.string(`f${index}`), 0, 1, 1, 0, 0),
    );
    let stack = 0;
    for (let index = 1; index < 1_000_000; index++) {
      // Runs of a hundred calls, each from somewhere below.
      const parent = index % 100 === 0 ? Math.floor(index / 200) : stack;
      stack = builder.stack(parent, itemAt(frames, (index * 7919) % 1000));
    }
    const tables = builder.tables();
    const tree = calleesBelow(tables, new Float64Array(tables.stacks.length).fill(1));
    expect(tree.length).toBe(tables.stacks.length);
    expect(withDescendants(tree, new Float64Array(tree.length).fill(1))[0]).toBe(tree.length);
  });
});
