import type { SiteGroup } from "../inspect/index.js";
import type { DiagnosisJson, VerdictKind } from "../model/documents/diagnosis_document.js";
import type { SummaryJson } from "../model/documents/summary_document.js";
import type { Figure, Measured, MeasuredGrowth } from "./measured.js";

export const MIB = 2 ** 20;

/** One process that ran a minute with a peak of 100 MiB, 80 MiB of it from load (app.py:12), and does not grow. */
export function measured(
  changes: Partial<Omit<Measured, "summary" | "diagnosis">> & {
    readonly verdict?: VerdictKind;
    readonly processes?: number;
    readonly suspects?: DiagnosisJson["suspects"];
  } = {},
): Measured {
  const { verdict = "steady", processes = 1, suspects = [], ...rest } = changes;
  return {
    summary: {
      target: { pid: 7, command: ["python", "app.py"], python: "3.11.7", startedMs: 0 },
      processes: Array.from({ length: processes }),
    } as unknown as SummaryJson,
    diagnosis: {
      verdict: { kind: verdict, confidence: 0.9, summary: "one sentence." },
      growth: { bytesPerHour: 0, low: -MIB, high: MIB },
      suspects,
    } as unknown as DiagnosisJson,
    durationMs: 60_000,
    peak: exactly(100 * MIB),
    live: { value: 80 * MIB, low: 76 * MIB, high: 84 * MIB },
    growth: growing({ value: 0, low: -MIB, high: MIB }),
    groups: [group("load", 12, 80 * MIB)],
    mostGrown: () => null,
    ...rest,
  };
}

/** Growth of a minute's run; `late`: of its last third, by default the same. */
export function growing(figure: Figure, late = figure): MeasuredGrowth {
  return { ...figure, late, lateMs: 20_000, isSteady: true };
}

export function exactly(value: number) {
  return { value, low: value, high: value };
}

export function group(name: string, line: number, bytes: number, liveAtEnd = 0): SiteGroup {
  const figure = (amount: number) => ({ bytes: amount, standardErrorBytes: 0 });
  return {
    headline: { function: name, file: "/srv/app.py", line, kind: "python" },
    leaf: null,
    domain: "python",
    live: figure(liveAtEnd),
    atPeak: figure(bytes),
    allocated: figure(bytes),
    liveObjects: 1,
  };
}
