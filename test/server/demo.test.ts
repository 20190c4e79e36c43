/** `serve --demo`: what a visitor finds in it. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import type { AlertsJson } from "../../src/model/documents/alert_document.js";
import type {
  FleetDiagnosesJson,
  FleetDiagnosisJson,
} from "../../src/model/documents/fleet_diagnosis_document.js";
import type {
  FleetDiffJson,
  FleetVerdictsJson,
  ServicesJson,
} from "../../src/model/documents/fleet_document.js";
import type { FleetSizesJson } from "../../src/model/documents/sizes_document.js";
import { execute, removeScratch, scratch, tidemark } from "../run.js";
import { startServer } from "./running_server.js";

afterAll(removeScratch);

test("both leaks and the regression are found in the terminal", async () => {
  const server = await startServer(join(scratch(), "demo"), { options: ["--demo"] });
  const ask = async <Document>(...words: string[]) => {
    const { stdout, stderr } = await execute([
      ...[tidemark, "fleet", ...words, "--server", server.url, "--json"],
    ]);
    expect(stderr).toBe("");
    return JSON.parse(stdout) as Document;
  };
  try {
    const { services } = await ask<ServicesJson>("services");
    expect(services).toHaveLength(20);
    expect(services.every(({ instances }) => instances > 0)).toBe(true);
    const diff = await ask<FleetDiffJson>(
      ...["diff", "checkout@2.41.0", "checkout@2.42.0", "--since", "7d"],
    );
    expect(diff.stacks[0]?.stack[0]).toMatchObject({ function: "PriceTable.price_for", line: 73 });
    const sizes = await ask<FleetSizesJson>("sizes");
    expect(
      sizes.sizes.filter(({ state }) => state === "leaks").map(({ service }) => service),
    ).toEqual(["notifications", "thumbnails"]);
    const search = (await ask<FleetSizesJson>("sizes", "search")).sizes;
    expect(search).toMatchObject([{ service: "search", state: "lower", instances: 5 }]);
    await expect
      .poll(
        async () => {
          const { verdicts } = await ask<FleetVerdictsJson>("verdicts", "--by", "instance");
          return [
            ...new Set(
              verdicts
                .filter(({ kind }) => kind.endsWith("-leak"))
                .map(({ service, kind }) => `${service} ${kind}`),
            ),
          ].sort();
        },
        { timeout: 100_000, interval: 3_000 },
      )
      .toEqual(["notifications python-leak", "thumbnails native-leak"]);
    await expect
      .poll(
        async () => {
          const { alerts } = await ask<AlertsJson>("alerts");
          return (
            alerts
              // Depending on the time of day, an instance was killed within the last hour.
              .filter(({ cause }) => cause !== "oom-kill")
              .sort((a, b) => (a.service < b.service ? -1 : 1))
              .map(({ service, version, cause, state, line, holder, forecast }) => [
                ...[service, version, cause, state, `${line?.function}:${line?.line}`],
                ...[holder?.path.join(" → ") ?? "", (forecast?.msToLimit ?? 0) > 0],
              ])
          );
        },
        // At first they are evaluated before the verdict that names the holder is there, and then a minute later.
        { timeout: 300_000, interval: 3_000 },
      )
      .toEqual([
        ["checkout", "2.42.0", "level", "firing", "PriceTable.price_for:73", "", false],
        [
          ...["notifications", "5.3.0", "growth", "firing", "Hub.subscribe:112"],
          ...["module notifications.hub → SUBSCRIBERS", true],
        ],
        ["thumbnails", "1.14.0", "growth", "firing", "Decoder.open:29", "", true],
      ]);
    const { diagnoses } = await ask<FleetDiagnosesJson>("verdicts", "--since", "1h");
    const leaks = diagnoses.flatMap(({ service, leak, suspects, forecast, change }) =>
      leak === undefined
        ? []
        : [
            {
              ...{ service, since: leak.since, instances: leak.affectedInstances },
              line: `${suspects[0]?.line.function}:${suspects[0]?.line.line}`,
              isRegression: change?.kind === "growth",
              hasForecast: (forecast[0]?.msToLimit ?? 0) > 0,
            },
          ],
    );
    const each = { hasForecast: true };
    expect(leaks.sort((a, b) => (a.service < b.service ? -1 : 1))).toEqual([
      {
        ...{ ...each, service: "notifications", since: "5.3.0", instances: 4, isRegression: true },
        line: "Hub.subscribe:112",
      },
      {
        ...{ ...each, service: "thumbnails", since: "1.14.0", instances: 3, isRegression: false },
        line: "Decoder.open:29",
      },
    ]);
    const checkout = await ask<FleetDiagnosisJson>("verdicts", "checkout");
    expect(checkout.change).toMatchObject({ kind: "level", version: "2.42.0", against: "2.41.0" });
  } finally {
    await server.stop();
  }
}, 600_000); // the demo has a month of 20 services to make

test("a folder with other data is refused, and keeps them", async () => {
  const folder = join(scratch(), "store");
  mkdirSync(folder);
  writeFileSync(join(folder, "meta.duckdb"), "data of somebody");
  const { status, stderr } = await execute([
    ...[tidemark, "serve", "--demo", "--listen", "127.0.0.1:0", "--store", `duckdb:${folder}`],
  ]);
  expect(status).toBe(2);
  expect(stderr).toMatch(/^tidemark: TM-E002 .* holds other data[^\n]*\n$/);
});
