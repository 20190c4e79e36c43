import { expect, it } from "vitest";
import { FrameKind, type ProfileTables } from "../../model/profile/profile.js";
import { ProfileTablesBuilder } from "../../model/profile/tables_builder.js";
import { contentId } from "./content_ids.js";
import { DictionaryRows } from "./dictionary_rows.js";
import { WrittenIds } from "./written_ids.js";

function frameId(name: string): bigint {
  return contentId("frame", name, "app.py", 1, FrameKind.python);
}

/** By the definition: each id from the parent's and the frame's. `names`: root first. */
function stackId(names: readonly string[]): bigint {
  return names.reduce(
    (parent, name) => contentId("stack", parent, frameId(name)),
    contentId("stack"),
  );
}

function stackOf(builder: ProfileTablesBuilder, names: readonly string[]): number {
  return names.reduce((parent, name) => {
    const [text, file] = [builder.string(name), builder.string("app.py")];
    return builder.stack(parent, builder.frame(text, file, 1, 0, FrameKind.python, 0));
  }, 0);
}

it("gives stacks the ids of their content, also those on top of stacks whose ids were dropped", () => {
  const added: unknown[][] = [];
  const rows = new DictionaryRows(
    (...row) => added.push(row),
    (_name, value) => value,
    new WrittenIds(),
  );
  const builder = new ProfileTablesBuilder();
  const idOf = (tables: ProfileTables, stack: number) => {
    rows.take(tables);
    const id = rows.stackId(tables, stack);
    expect(rows.stackId(tables, stack)).toBe(id);
    rows.release();
    return id;
  };
  const lists = [
    ["main", "a", "b"],
    ["main", "a", "b", "c"],
    ["main", "a", "d"],
    ["main", "a"],
    ["main", "e", "f", "g"],
    ["main", "e", "h"],
    [],
  ];
  for (const names of lists) {
    const stack = stackOf(builder, names);
    expect(idOf(builder.tables(), stack)).toBe(stackId(names));
  }
  expect(added.filter(([table]) => table === "stacks")).toHaveLength(lists.length);
  rows.forgetWritten();
  for (const names of lists) {
    expect(idOf(builder.tables(), stackOf(builder, names))).toBe(stackId(names));
  }
  // They exist: they are not written twice.
  expect(added.filter(([table]) => table === "stacks")).toHaveLength(lists.length);
});
