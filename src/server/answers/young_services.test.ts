/** Services that run for minutes: the verdicts of their instances. */
import { expect, test } from "vitest";
import type {
  FleetDiagnosesJson,
  FleetDiagnosisJson,
  FleetShape,
} from "../../model/documents/fleet_diagnosis_document.js";
import type { FleetVerdictsJson } from "../../model/documents/fleet_document.js";
import { hasYoung, withInstanceVerdicts } from "./young_services.js";

const window = { startMs: 0, endMs: 60_000 };

function diagnoses(shapes: Readonly<Record<string, FleetShape>>): FleetDiagnosesJson {
  const rate = { growthBytesPerHour: 0, low: 0, high: 0 };
  return {
    ...{ schema: "tidemark.fleetDiagnoses/1", window },
    diagnoses: Object.entries(shapes).map(
      ([service, shape]): FleetDiagnosisJson => ({
        ...{ schema: "tidemark.fleetDiagnosis/1", service, window },
        verdict: {
          kind: shape === "flat" ? "steady" : "insufficient-evidence",
          ...{ confidence: 0.5, summary: `${service} has too few readings for a verdict.` },
        },
        versions: [{ ...rate, version: "", instances: 1, shape, windowMs: 1, levelBytes: 1 }],
        ...{ oddInstances: [], suspects: [], forecast: [], evidence: [], limits: [] },
      }),
    ),
  };
}

function verdictsOf(service: string, ...kinds: string[]): FleetVerdictsJson {
  return {
    ...{ schema: "tidemark.fleet_verdicts/1", window },
    verdicts: kinds.map((kind, at) => ({
      ...{ service, version: "", stream: `${at}`, host: "h", pod: "", pid: at, isRunning: at < 5 },
      ...{ state: at < 5 ? "running" : "ended", lastSeenMs: 60_000 },
      ...{ kind, confidence: 0.9, summary: `Line ${at} keeps memory.`, msToLimit: 0 },
    })),
  };
}

const summary = (shape: FleetShape, ...kinds: string[]) =>
  withInstanceVerdicts(diagnoses({ shop: shape }), verdictsOf("shop", ...kinds)).diagnoses[0]
    ?.verdict.summary;

test("the line that an instance's diagnosis names is in the summary of a young service", () => {
  expect(summary("short", "steady", "child-growth")).toBe(
    "shop has too few readings for a verdict. One of its instances has a verdict: child-growth (90 % sure). Line 1 keeps memory.",
  );
  expect(summary("short", "python-leak", "python-leak", "warm-up")).toBe(
    "shop has too few readings for a verdict. 2 of its instances have a verdict, the fastest growing: python-leak (90 % sure). Line 0 keeps memory.",
  );
});

test("instances that ended or do not leak, other services, and services that are old enough change nothing", () => {
  const plain = "shop has too few readings for a verdict.";
  expect(summary("short", "steady", "cache-plateau", "none", "out-of-memory", "warm-up")).toBe(
    plain,
  );
  expect(summary("short", ...Array(5).fill("steady"), "python-leak")).toBe(plain);
  expect(summary("undecided", "python-leak")).toBe(plain);
  expect(summary("flat", "python-leak")).toBe(plain);
  const other = withInstanceVerdicts(diagnoses({ shop: "short" }), verdictsOf("s", "python-leak"));
  expect(other).toEqual(diagnoses({ shop: "short" }));
  expect([hasYoung(diagnoses({ shop: "short" })), hasYoung(diagnoses({ shop: "flat" }))]).toEqual([
    ...[true, false],
  ]);
});
