/**
 * The line that explains why a version needs more memory than the one before it: that whose live bytes an instance has most
 * more of. The fleet's diagnosis names lines only for growth.
 */
import { basename } from "node:path";
import { formatBytes } from "../../model/base/numbers.js";
import type { Millis, TimeMs } from "../../model/base/units.js";
import type { FrameJson } from "../../model/documents/documents.js";
import type { FleetDiagnosisJson } from "../../model/documents/fleet_diagnosis_document.js";
import { ownFrame } from "../../model/documents/own_code.js";
import type { Store } from "../../store/index.js";
import { fleetDiff } from "../answers/comparisons.js";
import type { Finding } from "./findings.js";

/** What two versions need does not change from one evaluation to the next. */
const KEPT_MS: Millis = 3_600_000;
const MOST_STACKS = 200;
const MOST_KEPT = 1000;

type Change = NonNullable<FleetDiagnosisJson["change"]>;

interface Explained {
  readonly atMs: TimeMs;
  readonly line: FrameJson | undefined;
  readonly bytes: number;
}

export class LevelLines {
  readonly #store: Store;
  readonly #kept = new Map<string, Explained>();

  constructor(store: Store) {
    this.#store = store;
  }

  /** Never throws: an alert without its line is better than none. @returns the finding with its line, if profiles of both versions name one. */
  async explain(finding: Finding, diagnosis: FleetDiagnosisJson, nowMs: TimeMs): Promise<Finding> {
    const { change, window } = diagnosis;
    if (finding.cause !== "level" || change === undefined) {
      return finding;
    }
    const key = JSON.stringify([finding.service, change.version, change.against]);
    const kept = this.#kept.get(key);
    const found =
      kept !== undefined && nowMs - kept.atMs < KEPT_MS
        ? kept
        : await this.#find(finding.service, change, window, nowMs).catch(() => ({
            ...{ atMs: nowMs, line: undefined, bytes: 0 },
          }));
    if (found !== kept) {
      if (this.#kept.size >= MOST_KEPT) {
        this.#kept.clear();
      }
      this.#kept.set(key, found);
    }
    const { line, bytes } = found;
    return line === undefined
      ? finding
      : {
          ...finding,
          line,
          summary: `${finding.summary} ${formatBytes(bytes)} of that is allocated at ${line.function} (${basename(line.file)}:${line.line}).`,
        };
  }

  async #find(
    service: string,
    { version, against }: Change,
    window: FleetDiagnosisJson["window"],
    atMs: TimeMs,
  ): Promise<Explained> {
    const side = (name: string) => ({
      selector: `{service_name=${JSON.stringify(service)}, version=${JSON.stringify(name)}}`,
      window,
    });
    const { stacks, left, right } = await fleetDiff(this.#store, [side(against), side(version)], {
      ...{ figure: "liveBytes", per: "instance", top: MOST_STACKS },
    });
    const lines = new Map<string, { line: FrameJson; bytes: number }>();
    for (const { stack, change } of stacks) {
      const line = ownFrame(stack);
      if (line !== undefined) {
        const name = `${line.file}\n${line.line}`;
        const bytes = (lines.get(name)?.bytes ?? 0) + change;
        lines.set(name, { line, bytes });
      }
    }
    const [most] = [...lines.values()].sort((a, b) => b.bytes - a.bytes);
    const isKnown = left.instances > 0 && right.instances > 0 && most !== undefined;
    return isKnown && most.bytes > 0 ? { atMs, ...most } : { atMs, line: undefined, bytes: 0 };
  }
}
