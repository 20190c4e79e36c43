/** Retention removes what only removed days referred to, and nothing else. */
import { expect, it } from "vitest";
import { environment } from "../../test/environment.js";
import { frameName, framesOf } from "../model/profile/frame_text.js";
import type { StreamPlan } from "../recording/streams.fixture.js";
import type { Retention, Store } from "./index.js";
import { DAY, describeStores, HOUR, MIB, partOf, withStore } from "./stores.fixture.js";

/** Noon. */
const START = Date.UTC(2026, 8, 10, 12);
const MUCH = Number.MAX_SAFE_INTEGER;
const KEEP: Retention = {
  keepMs: 2 * DAY,
  mostBytes: MUCH,
  tiers: { raw: MUCH, "10m": MUCH, "1h": MUCH },
};
const LATER = START + 4 * DAY;

const request = (pid: number, startedMs: number): StreamPlan => ({
  ...{ service: "shop", pid, startedMs, labels: { request: `r${pid}`, team: "a" } },
  profiles: [[0, `main;f${pid} ${MIB} variance=1 label=user:u${pid}\nmain;both ${MIB} variance=1`]],
});

describeStores(environment, (tested) => {
  let folder: string;
  let store: Store;
  const open = withStore(
    tested,
    (opened, place) => {
      [store, folder] = [opened, place];
    },
    { labelValues: 3 },
  );

  /** Forgets its streams, as the server does for those that send nothing for a while. */
  const give = async (plan: StreamPlan) => {
    const part = partOf(plan);
    await store.write([part], 0);
    store.forget(part.stream);
    return part.stream;
  };

  async function counts() {
    await store.close();
    const result = await tested.counts(folder);
    await open();
    return result;
  }

  async function functions(startMs: number, endMs: number) {
    const of = { service: "shop" };
    const { tables, snapshot } = await store.profile({ of, startMs, endMs, mostStacks: 100 });
    return Array.from(snapshot.sites.stack, (stack) =>
      Array.from(framesOf(tables, stack), (frame) => frameName(tables, frame)).join(" "),
    ).sort();
  }

  const usedValues = async () =>
    Object.fromEntries((await store.labelUse()).map(({ label, values }) => [label, values]));

  it("removes series, stacks, frames and labels, and frees the budget of labels", async () => {
    for (const pid of [1, 2, 3, 4]) {
      await give(request(pid, START));
    }
    await give(request(2, LATER));
    expect(await usedValues()).toEqual({ request: 3, team: 1, user: 3 });
    const before = await counts();
    // Of each program, its own series and that of the process with the profiles.
    expect(before).toMatchObject({ series: 10, streams: 5, label_values: 7 });
    await store.retain(KEEP, LATER + HOUR);
    expect(await usedValues()).toEqual({ request: 1, team: 1, user: 1 });
    expect(await counts()).toEqual({
      ...{ series: 2, streams: 1, stacks: 2, frames: 3, labels: 2 },
      label_values: 3,
    });
    expect(await functions(LATER, LATER + HOUR)).toEqual(["both main", "f2 main"]);
    // There is room for new values, also after the restart that counting made.
    for (const pid of [5, 6, 7]) {
      await give(request(pid, LATER));
    }
    const matchers = [{ name: "service", operator: "=", value: "shop" }] as const;
    const query = { matchers, startMs: LATER, endMs: LATER + HOUR };
    expect(await store.labelValues("request", query)).toEqual(["__overflow__", "r2", "r5", "r6"]);
  });

  it("keeps what a running program's next rows refer to", async () => {
    const profiles = [0, 4, 6, 8].map(
      (days) => [days * DAY, `main;keep ${MIB} label=user:u`] as const,
    );
    const { stream, items, endOffset } = partOf({ ...request(1, START), profiles });
    const cuts = items.flatMap(({ kind }, at) => (kind === "profile" ? [at + 1] : []));
    const write = async (from: number, to: number) => {
      const part = items.slice(from, to);
      await store.write([{ stream, items: part, endOffset: part.at(-1)?.endOffset ?? 0 }], 0);
    };
    await write(0, cuts[0] ?? 0);
    // Its only day is removed, and another one remains.
    await give(request(9, START + 4 * DAY));
    await store.retain(KEEP, START + 4 * DAY);
    await write(cuts[0] ?? 0, cuts[1] ?? 0);
    const at = (days: number) => functions(START + days * DAY, START + days * DAY + HOUR);
    expect(await at(4)).toEqual(["both main", "f9 main", "keep main"]);
    // The same after a restart, which reads the stream from its start.
    await store.close();
    await open();
    await give(request(8, START + 6 * DAY));
    await store.retain(KEEP, START + 8 * DAY);
    const again = items.slice(0, cuts[2]);
    await store.write([{ stream, items: again, endOffset: again.at(-1)?.endOffset ?? 0 }], 0);
    expect(await at(6)).toEqual(["both main", "f8 main", "keep main"]);
    await store.retain({ ...KEEP, keepMs: DAY }, START + 8 * DAY);
    await store.write([{ stream, items: items.slice(cuts[2]), endOffset }], 0);
    expect(await at(8)).toEqual(["keep main"]);
    const matchers = [{ name: "service", operator: "=", value: "shop" }] as const;
    const window = { startMs: START + 8 * DAY, endMs: START + 8 * DAY + HOUR };
    expect(await store.labelSets(["service_name", "request"], { ...window, matchers })).toEqual([
      ["shop", "r1"],
    ]);
  });

  it("keeps what arrives during a pass", async () => {
    for (const pid of [1, 2, 3]) {
      await give(request(pid, START));
    }
    await give(request(4, LATER));
    const passing = store.retain(KEEP, LATER + HOUR);
    // The stacks and values of programs whose day is being removed.
    for (const pid of [1, 2, 3]) {
      await give(request(pid, LATER + HOUR));
    }
    await passing;
    expect(await functions(LATER, LATER + 2 * HOUR)).toEqual([
      ...["both main", "f1 main", "f2 main", "f3 main", "f4 main"],
    ]);
    const sets = await counts();
    expect(sets).toMatchObject({ series: 8, streams: 4 });
    expect(await functions(LATER, LATER + 2 * HOUR)).toHaveLength(5);
  });

  it("keeps what is known about programs whose recordings are stored", async () => {
    const stream = await give(request(1, START));
    await give(request(2, START));
    await give(request(3, LATER));
    await store.retain(KEEP, LATER + HOUR, [stream]);
    expect(await store.about([stream])).toMatchObject(new Map([[stream, { service: "shop" }]]));
    expect((await store.writtenOffsets()).size).toBe(2);
    // Removed recordings alone are a reason once a day.
    await store.retain(KEEP, LATER + 2 * HOUR, []);
    expect((await store.about([stream])).size).toBe(1);
    await store.retain(KEEP, LATER + 25 * HOUR, []);
    expect(await store.about([stream])).toEqual(new Map());
    expect((await store.writtenOffsets()).size).toBe(1);
  });
});
