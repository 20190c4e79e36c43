/** A document of any size, for the tests and the benchmark of the report page. */

import { uint8At, uint32At } from "../src/model/base/columns.js";
import { randomFrom } from "../src/model/base/random.fixture.js";
import type { ReportDocument } from "../src/model/documents/report_document.js";
import type { ProfileTables } from "../src/model/profile/profile.js";
import { newSiteTable } from "../src/model/profile/site_columns.js";
import { serviceReport } from "./service_report.js";

/** A tree of about `nodes` stacks, each with a site: wide at the leaves, forty frames deep. */
export function wideReport(nodes: number): ReportDocument {
  const service = serviceReport();
  const functions = 5000;
  const parent = new Uint32Array(nodes);
  const frame = new Uint32Array(nodes);
  const depth = new Uint8Array(nodes);
  const random = randomFrom(12345);
  for (let node = 1; node < nodes; node++) {
    let above = Math.floor(random() ** 2 * node);
    while (uint8At(depth, above) >= 40) {
      above = uint32At(parent, above);
    }
    parent[node] = above;
    depth[node] = uint8At(depth, above) + 1;
    frame[node] = Math.floor(random() * functions);
  }
  const strings = [""];
  const tables: ProfileTables = {
    ...service.tables,
    strings,
    frames: {
      length: functions,
      function: Uint32Array.from(
        { length: functions },
        (_, i) => strings.push(`function_${i}`) - 1,
      ),
      file: Uint32Array.from(
        { length: functions },
        (_, i) => strings.push(`/srv/wide/module_${i % 97}.py`) - 1,
      ),
      line: Uint32Array.from({ length: functions }, (_, i) => i + 1),
      firstLine: new Uint32Array(functions),
      kind: new Uint8Array(functions),
      address: new Float64Array(functions),
    },
    stacks: { length: nodes, parent, frame },
    labels: {
      length: 1,
      parent: new Uint32Array(1),
      key: new Uint32Array(1),
      value: new Uint32Array(1),
    },
  };
  const sites = newSiteTable(nodes, 1);
  for (let row = 0; row < nodes; row++) {
    const bytes = 1024 * (1 + random() * 63);
    sites.stack[row] = row;
    sites.domain[row] = row % 3;
    sites.liveBytes[row] =
      sites.allocatedBytes[row] =
      sites.peakBytes[row] =
      sites.cohortBytes[row] =
        bytes;
    sites.liveObjects[row] = 1;
    sites.liveVariance[row] = bytes * 4096;
  }
  const endMs = service.summary.window.endMs;
  return {
    ...service,
    title: "wide.tidemark",
    tables,
    snapshots: [
      {
        timeMs: endMs,
        durationMs: 600_000,
        sites,
        files: newSiteTable(0, 1),
        copies: newSiteTable(0, 1),
        cohorts: [endMs],
        peakMs: [endMs],
      },
    ],
  };
}
