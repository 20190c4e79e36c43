/** Services for tests of the fleet's diagnosis: lives of processes with readings of RSS and of lines. */
import { noise } from "../evidence/evidence.fixture.js";
import type { FleetProcess } from "./curves/fleet_evidence.js";
import { diagnoseService } from "./diagnose_fleet.js";

export const MIB = 2 ** 20;
export const HOUR = 3_600_000;
export const DAY = 24 * HOUR;
export const END = Date.UTC(2026, 2, 25, 9);

export interface Life {
  readonly instance: number;
  readonly version: string;
  readonly fromDaysAgo: number;
  readonly toDaysAgo?: number;
  /** MiB at an age in hours. */
  readonly mib: (hours: number) => number;
  readonly withSites?: boolean;
  /** What the agent sees at its only site, if it is not `mib`. */
  readonly siteMib?: (hours: number) => number;
  /** In place of that site: what functions hold, as a sampler sees it. */
  readonly lines?: Readonly<Record<string, (hours: number) => number>>;
  /** The bound of the cache that holds what a function of `lines` allocates; 0: a dict without a bound. */
  readonly bounds?: Readonly<Record<string, number>>;
  /** Constant, or at an age in hours; left out: unknown. */
  readonly requestsPerSecond?: number | ((hours: number) => number);
}

/** Readings every 10 minutes, with a daily load of 40 MiB and noise of 2 MiB. */
export function processOf({
  instance,
  version,
  fromDaysAgo,
  toDaysAgo,
  mib,
  withSites,
  siteMib = mib,
  lines,
  bounds = {},
  requestsPerSecond,
}: Life): FleetProcess {
  const startedMs = END - fromDaysAgo * DAY;
  const endedMs = toDaysAgo === undefined ? null : END - toDaysAgo * DAY;
  const times: number[] = [];
  const values: number[] = [];
  const live: number[] = [];
  for (let time = startedMs + 60_000; time < (endedMs ?? END); time += 600_000) {
    const grown = mib((time - startedMs) / HOUR);
    const load = 20 * (1 - Math.cos((2 * Math.PI * time) / DAY));
    times.push(time);
    values.push(MIB * (300 + 5 * instance + load + grown + 2 * noise(time / 6e4 + instance)));
    live.push(MIB * siteMib((time - startedMs) / HOUR));
  }
  const rateAt = (time: number) =>
    typeof requestsPerSecond === "function"
      ? requestsPerSecond((time - startedMs) / HOUR)
      : (requestsPerSecond ?? 0);
  const lineOf = (name: string) =>
    ({ function: name, file: "/srv/app/state.py", line: 41, kind: "python" }) as const;
  const site = (name: string, values: readonly number[]) => ({
    stack: [lineOf(name)],
    live: { times, values },
  });
  const sampled = (mibAt: (hours: number) => number) =>
    times.map((time, at) => {
      const seen = mibAt((time - startedMs) / HOUR) * (1 + 0.05 * noise(7 * at + instance));
      return MIB * Math.max(0, seen);
    });
  return {
    process: `${version}/${instance}/${fromDaysAgo}`,
    instance: `app-${instance}`,
    version,
    startedMs,
    endedMs,
    limitBytes: 1024 * MIB,
    rss: { times, values },
    requests: requestsPerSecond === undefined ? null : { times, values: times.map(rateAt) },
    sites:
      lines !== undefined
        ? Object.entries(lines).map(([name, mibAt]) => site(name, sampled(mibAt)))
        : withSites === true
          ? [site("remember", live)]
          : [],
    kind: null,
    holders: Object.entries(bounds).map(([name, bound]) => ({
      ...{ line: lineOf(name), path: ["module app.state", name], type: "dict" },
      ...(bound > 0 ? { bound } : {}),
    })),
  };
}

export const diagnosisOf = (lives: readonly Life[], services = 50) =>
  diagnoseService(
    {
      service: "shop",
      window: { startMs: END - 14 * DAY, endMs: END },
      processes: lives.map(processOf),
    },
    services,
  );
export const three = (life: Omit<Life, "instance">) =>
  [0, 1, 2].map((instance) => ({ ...life, instance }));
export const flat = () => 0;
export const OLD = three({ version: "1.0", fromDaysAgo: 10, toDaysAgo: 3, mib: flat });
