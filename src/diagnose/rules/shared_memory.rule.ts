import { formatBytesBriefly, formatSlopeBriefly } from "../../model/base/numbers.js";
import type { Bytes, TimeMs } from "../../model/base/units.js";
import { isLarge, type Observations, type ProcessObservation } from "../evidence/observations.js";
import type { Growth } from "../series/growth.js";
import { valueAt } from "../sites/site_history.js";
import type { SiteJudgement } from "../sites/suspects.js";
import { mappers } from "./mapped_files.rule.js";
import { type Rule, silent } from "./rule.js";

/** Shared memory grows: mapped by a process, or left in /dev/shm unmapped. */
export const sharedMemory: Rule = {
  name: "shared-memory",
  judge(observations) {
    const { target, processes } = observations;
    const grows = (growths: readonly Growth[]) =>
      growths
        .filter((growth) => growth.shape === "growing" && isLarge(growth))
        .sort((x, y) => y.rise - x.rise)[0];
    const mapped = grows(processes.map((process) => process.growth("shmemRssBytes")));
    const left = grows([target.growth("shmUsedBytes")]);
    const found = { says: "leak", kind: "shm-growth" } as const;
    if (mapped) {
      return {
        ...found,
        weight: 0.98,
        detail: `Shared memory grows by ${formatSlopeBriefly(mapped.slope)}, to ${formatBytesBriefly(mapped.level)} now.`,
        growth: mapped,
        suspects: [
          ...new Set([...mappers(observations), ...anonymousMappers(observations, mapped)]),
        ],
      };
    }
    if (!left) {
      const known = processes.some(
        (process) => process.readings("shmemRssBytes").values.length > 0,
      );
      return known ? silent("Shared memory does not grow.") : null;
    }
    // No process maps it any more, and another program may have created it. It is attributed to this program
    // only if there is evidence for that.
    const detail = `/dev/shm grows by ${formatSlopeBriefly(left.slope)}, to ${formatBytesBriefly(left.level)} now`;
    const makers = formerMappers(observations, left);
    const isSeenToRelease = observations.evidence.mappings === undefined && processes.some(letsGo);
    if (makers.length > 0 || isSeenToRelease) {
      const suspects = makers.length > 0 ? makers : mappers(observations);
      return {
        ...found,
        weight: 0.8,
        detail: `${detail}, and its blocks are no longer mapped: they were closed but never unlinked.`,
        growth: left,
        suspects,
      };
    }
    if (processes.some((process) => writesAsMuch(process, left))) {
      return {
        ...found,
        weight: 0.7,
        detail: `${detail}: no process maps the new files, and the program writes the same amount.`,
        growth: left,
        suspects: mappers(observations),
      };
    }
    return silent(
      `${detail}, filled by another program: none of these processes mapped such blocks or wrote the same amount.`,
    );
  },
};

/** What mapped blocks keep as a multiple of the growth of shared memory; with more, some of them are private. */
const MOST_OF_SHARED = 1.3;

/** Sites that keep anonymous mappings which are shared (`mmap.mmap(-1, n)`): this memory, not another leak's. */
function anonymousMappers({ suspects }: Observations, { slope }: Growth): SiteJudgement[] {
  const mapping = suspects.filter(({ site }) => site.domain === "mapped");
  const kept = mapping.reduce((sum, suspect) => sum + suspect.slope, 0);
  return kept <= MOST_OF_SHARED * slope ? mapping : [];
}

/**
 * Mapped bytes as a multiple of the growth of /dev/shm: each block is mapped once, or again to read it, plus
 * the sampling error.
 */
const MAPPED_SHARES = [0.75, 2.25] as const;
/** Written bytes as a multiple of that growth: the program may also write a log and responses. */
const WRITTEN_SHARES = [0.9, 1.8] as const;

function explains(bytes: Bytes, { rise }: Growth, [least, most]: readonly [number, number]) {
  return bytes >= least * rise && bytes <= most * rise;
}

/**
 * The least share of what a site mapped after the first third of the window that it mapped in the second third. A site with less
 * maps the blocks only at the end, to clean up.
 */
const LEAST_MEANWHILE = 0.25;

/**
 * Sites that mapped about as much since the first third of the window as /dev/shm gained, while it did, but keep nothing
 * mapped.
 */
function formerMappers(
  { mappings, evidence, windowMs }: Observations,
  left: Growth,
): SiteJudgement[] {
  const histories = evidence.mappings;
  if (!histories) {
    return [];
  }
  const { startMs, endMs } = evidence.window;
  const makers = mappings
    .filter(({ site }) => !site.imports)
    .map((judgement) => {
      const { allocatedBytes } = judgement.site;
      const at = (timeMs: TimeMs) => valueAt(histories, allocatedBytes, timeMs);
      const before = at(startMs + windowMs / 3);
      const meanwhile = at(startMs + (windowMs * 2) / 3) - before;
      return { judgement, bytes: at(endMs) - before, meanwhile };
    })
    .filter(
      ({ bytes, meanwhile }) =>
        explains(bytes, left, MAPPED_SHARES) && meanwhile >= LEAST_MEANWHILE * bytes,
    );
  const all = makers.reduce((sum, { bytes }) => sum + bytes, 0);
  return makers.map(({ judgement, bytes }) => ({
    ...judgement,
    slope: (left.slope * bytes) / all,
  }));
}

function writesAsMuch(process: ProcessObservation, left: Growth): boolean {
  const { shape, rise } = process.growth("writtenBytes");
  return shape === "growing" && explains(rise, left, WRITTEN_SHARES);
}

/**
 * Blocks that are created, filled and closed are mapped during some polls only, so mapped shared memory
 * sometimes falls. (The agent's own segment only grows.)
 */
function letsGo(process: ProcessObservation): boolean {
  const { values } = process.readings("shmemRssBytes");
  return values.some((bytes, i) => bytes < (values[i - 1] ?? 0));
}
