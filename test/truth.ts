/** Compares a profile with what a program (test/programs/truth.py) reports about its own memory. */

import { expect } from "vitest";
import { float64At, itemAt, uint32At } from "../src/model/base/columns.js";
import { Domain, FrameKind, type Profile } from "../src/model/profile/profile.js";

export interface KnownSite {
  readonly name: string;
  readonly function: string;
  /** Base name. */
  readonly file: string;
  readonly line: number;
  readonly liveBytes: number;
  /** null: the program does not know. */
  readonly allocatedBytes: number | null;
  /** The line's memory is allocated by functions that it calls. */
  readonly through?: boolean;
}

export interface Truth {
  readonly pid: number;
  readonly python: string;
  readonly maxRssBytes: number;
  readonly sites: readonly KnownSite[];
}

export interface Estimate {
  readonly bytes: number;
  readonly standardError: number;
  readonly samples: number;
}

export type Figure = "live" | "peak" | "allocated";

/** The last line of a program's output that is a JSON object. */
export function truthIn(stdout: string): Truth {
  const line = stdout.split("\n").findLast((text) => text.startsWith('{"pid"'));
  if (line === undefined) {
    throw new Error(`the program reported no figures: ${stdout}`);
  }
  return JSON.parse(line) as Truth;
}

/**
 * Site figures by "function file:line" of the innermost Python frame, summed over all processes and
 * threads; with `through`, by every Python frame; with `domain`, only for one allocator.
 */
export function bytesByLine(
  profile: Profile,
  figure: Figure,
  { through = false, domain }: { through?: boolean; domain?: Domain } = {},
): Map<string, Estimate> {
  const { sites } = profile;
  const [bytes, variance] = (
    {
      live: [sites.liveBytes, sites.liveVariance],
      peak: [sites.peakBytes, sites.peakVariance],
      allocated: [sites.allocatedBytes, sites.allocatedVariance],
    } as const
  )[figure];
  const found = new Map<string, Estimate>();
  for (let site = 0; site < sites.length; site++) {
    if (domain !== undefined && sites.domain[site] !== domain) {
      continue;
    }
    const places = pythonPlaces(profile, uint32At(sites.stack, site));
    for (const place of through ? new Set(places) : places.slice(0, 1)) {
      const before = found.get(place) ?? { bytes: 0, standardError: 0, samples: 0 };
      found.set(place, {
        bytes: before.bytes + float64At(bytes, site),
        standardError: Math.sqrt(before.standardError ** 2 + float64At(variance, site)),
        samples: before.samples + uint32At(sites.liveSamples, site),
      });
    }
  }
  return found;
}

/** "function file:line" of a stack's Python frames, leaf first; a placeholder for a stack without any. */
function pythonPlaces({ frames, stacks, strings }: Profile, stack: number): string[] {
  const places: string[] = [];
  for (let node = stack; node !== 0; node = uint32At(stacks.parent, node)) {
    const frame = uint32At(stacks.frame, node);
    if (frames.kind[frame] !== FrameKind.python) {
      continue;
    }
    const name = itemAt(strings, uint32At(frames.function, frame));
    const file = itemAt(strings, uint32At(frames.file, frame));
    places.push(placeName(name, file, uint32At(frames.line, frame)));
  }
  return places.length > 0 ? places : ["(no Python frame)"];
}

/** Python 3.11 and newer keep the qualified name, older ones the bare one. */
export function placeName(name: string, file: string, line: number): string {
  return `${name.split(".").at(-1)} ${file.split("/").at(-1)}:${line}`;
}

export function placeOf(known: KnownSite): string {
  return placeName(known.function, known.file, known.line);
}

/** A site of this many sampling periods gets no sample once in a million runs. */
const SURE_PERIODS = 14;

/**
 * Expects the estimate to be within five of its own standard errors of the truth: a correct one fails
 * once in two million figures. `slack` (a share of the truth) is for what the program itself does
 * not count, such as an array's header; `coarsest` is the coarsest period of the run, which on a busy
 * machine is not the last one.
 */
export function expectFigure(
  profile: Profile,
  known: KnownSite,
  figure: Figure,
  exact: number,
  slack = 0.02,
  coarsest = Math.max(...profile.processes.map(({ periodBytes }) => periodBytes)),
): void {
  const estimate = bytesByLine(profile, figure, { through: known.through ?? false }).get(
    placeOf(known),
  );
  const said = `${figure} bytes of ${known.name} (${placeOf(known)})`;
  if (exact === 0) {
    const tolerance = 5 * (estimate?.standardError ?? 0) + 256 * 1024;
    expect(estimate?.bytes ?? 0, said).toBeLessThanOrEqual(tolerance);
    return;
  }
  if (estimate === undefined) {
    const missed = `${said}: no such site among ${describeTop(profile, figure)}`;
    expect(exact, missed).toBeLessThan(SURE_PERIODS * coarsest);
    return;
  }
  expectEstimate(estimate, exact, slack, said);
  // With an error as large as the figure, any figure would pass the check above.
  expect(estimate.standardError, said).toBeLessThanOrEqual(
    Math.max(0.75 * exact, largestError(estimate.bytes, coarsest)),
  );
}

/** The largest standard error that an estimate may state, if the period was never coarser than this many bytes. */
export function largestError(bytes: number, coarsest: number): number {
  return 1.1 * Math.sqrt(bytes * coarsest);
}

/** Like {@link expectFigure}, for a given estimate. */
export function expectEstimate(
  estimate: Estimate | undefined,
  exact: number,
  slack = 0.02,
  said = "bytes",
): void {
  const { bytes, standardError } = estimate ?? { bytes: 0, standardError: 0 };
  // Too few samples state too small an error: use the error for the true number of samples.
  const fairError = standardError * Math.sqrt(Math.max(1, exact / Math.max(bytes, 1)));
  const claim = `${said}: estimated ${bytes} ± ${standardError}, exactly ${exact}`;
  expect(Math.abs(bytes - exact), claim).toBeLessThanOrEqual(5 * fairError + slack * exact);
}

/** The largest places, for the message of a failed check. */
export function describeTop(profile: Profile, figure: Figure): string {
  return [...bytesByLine(profile, figure)]
    .sort((a, b) => b[1].bytes - a[1].bytes)
    .slice(0, 8)
    .map(([place, { bytes }]) => `${place} ${Math.round(bytes / 1024)} KiB`)
    .join(", ");
}

/** Places by size, largest first. */
export function topPlaces(profile: Profile, figure: Figure): string[] {
  return [...bytesByLine(profile, figure)]
    .sort((a, b) => b[1].bytes - a[1].bytes)
    .map(([place]) => place);
}

/** Live bytes of the sites (by row) that `belongs` selects. */
export function liveOf({ sites }: Profile, belongs: (site: number) => boolean): Estimate {
  let [bytes, variance, samples] = [0, 0, 0];
  for (let site = 0; site < sites.length; site++) {
    if (!belongs(site)) {
      continue;
    }
    bytes += float64At(sites.liveBytes, site);
    variance += float64At(sites.liveVariance, site);
    samples += uint32At(sites.liveSamples, site);
  }
  return { bytes, standardError: Math.sqrt(variance), samples };
}

/** Estimated bytes of one domain. */
export function domainBytes(profile: Profile, domain: keyof typeof Domain): number {
  return liveOf(profile, (site) => profile.sites.domain[site] === Domain[domain]).bytes;
}
