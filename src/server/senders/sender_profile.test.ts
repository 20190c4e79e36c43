import { expect, it } from "vitest";
import { RowIndex } from "../../model/base/row_index.js";
import { ProfileTablesBuilder } from "../../model/profile/tables_builder.js";
import { decodeFolded } from "./formats/folded.js";
import { profileSnapshotOf } from "./sender_profile.js";

const IDENTITY = {
  ...{
    service: "shop",
    version: "1",
    env: "",
    namespace: "",
    workload: "",
    pod: "",
    container: "",
  },
  labels: {},
};

function snapshot(text: string, builder: ProfileTablesBuilder, stacks: RowIndex) {
  const decoded = decodeFolded(text, { figure: "liveBytes", format: "folded" });
  const sender = { source: "pyroscope" as const, identity: IDENTITY, host: "", pid: 1, id: "a" };
  const { threads } = builder.tables();
  const rows = new Map(threads.map(({ name }, row) => [name, row]));
  return profileSnapshotOf({ ...decoded, ...sender }, builder, rows, stacks);
}

function newBuilder(): ProfileTablesBuilder {
  const builder = new ProfileTablesBuilder();
  const about = { pid: 1, parentPid: 0, command: [], python: "", startedMs: 0, periodBytes: 0 };
  builder.addProcess(about);
  return builder;
}

it("gives the stacks of an earlier profile the same rows, whatever their order and the order of their frames", () => {
  const stacks = new RowIndex();
  const first = newBuilder();
  const before = snapshot("main;a 1\nmain;b;c 2\nmain;b 3\n", first, stacks);
  const tables = first.tables();
  const next = new ProfileTablesBuilder(tables);
  const after = snapshot("main;b 3\nmain;b;c 2\nmain;a 1\n", next, stacks);
  expect([...after.sites.stack]).toEqual([...before.sites.stack].reverse());
  expect(next.tables().stacks.length).toBe(tables.stacks.length);
  expect(next.tables().frames.length).toBe(tables.frames.length);
});

it("does not mistake a part of a stack, or a longer one, for a known one", () => {
  // An index in which everything has the same hash: only the frames distinguish stacks.
  class OneHash extends RowIndex {
    override find(_hash: number, same: (row: number) => boolean): number {
      return super.find(0, same);
    }
    override add(_hash: number, row: number): void {
      super.add(0, row);
    }
  }
  const stacks = new OneHash();
  const builder = newBuilder();
  const { sites } = snapshot(
    "a;b;c 1\nb;c 2\na;b 3\nc;b;a 4\na;b;c;d 5\na;b;c 10\n",
    builder,
    stacks,
  );
  expect(new Set(sites.stack).size).toBe(5);
  expect([...sites.liveBytes]).toEqual([11, 2, 3, 4, 5]);
  expect([...sites.cohortBytes]).toEqual([11, 2, 3, 4, 5]);
});

it("continues the tables of a stream whose stacks it does not know any more", () => {
  const first = newBuilder();
  const before = snapshot("main;a 1\nmain;b 2\n", first, new RowIndex());
  const next = new ProfileTablesBuilder(first.tables());
  const after = snapshot("main;b 2\nmain;d 1\nmain;a 1\n", next, new RowIndex());
  expect(after.sites.stack[0]).toBe(before.sites.stack[1]);
  expect(after.sites.stack[2]).toBe(before.sites.stack[0]);
  // The tables of the earlier profile are as they were.
  expect(first.tables().stacks.length).toBe(next.tables().stacks.length - 1);
  expect([...next.tables().stacks.frame].slice(0, -1)).toEqual([...first.tables().stacks.frame]);
});
