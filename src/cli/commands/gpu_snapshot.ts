/** `tidemark gpu SNAPSHOT...`: one is shown, two are compared, more are ranks. */

import { basename } from "node:path";
import {
  analyseSnapshot,
  compareRanks,
  compareSnapshots,
  withVerdict,
} from "../../inspect/index.js";
import { present } from "../../model/base/present.js";
import type { GpuJson } from "../../model/documents/gpu/gpu_document.js";
import { badUsage } from "../../model/errors/errors.js";
import { type CommonOptions, type ListOptions, selectRows } from "../options/options.js";
import { printGpuDiff } from "../screens/gpu/diff.js";
import { printGpuRanks } from "../screens/gpu/ranks.js";
import { printGpu, siteText } from "../screens/gpu/snapshot.js";
import { printJson, screenOf } from "../text/output.js";
import { withProgress } from "../text/progress.js";
import { writeGpuPage } from "./gpu_page.js";

export interface GpuOptions extends CommonOptions, ListOptions {
  readonly ranks?: boolean;
  readonly output?: string;
  readonly force?: boolean;
}

export async function showSnapshots(paths: readonly string[], options: GpuOptions): Promise<void> {
  if (new Set(paths).size < paths.length) {
    throw badUsage("a snapshot is named twice", "name each file once");
  }
  if (options.output !== undefined) {
    if (paths.length > 2 || (paths.length === 2 && options.ranks === true)) {
      throw badUsage(
        "a page shows one snapshot, or one before and one after",
        "name one or two with -o",
      );
    }
    return writeGpuPage(paths, options.output, options);
  }
  // Sequential, because a snapshot may need gigabytes of memory but its document does not.
  const documents: GpuJson[] = [];
  for (const path of paths) {
    documents.push(
      await withProgress(basename(path), "MiB", options, (onProgress) =>
        analyseSnapshot(path, onProgress),
      ),
    );
  }
  const [first, second] = documents;
  if (second === undefined) {
    showOne(withVerdict(present(first)), options);
  } else if (documents.length === 2 && options.ranks !== true) {
    showTwo(present(first), second, options);
  } else {
    const document = compareRanks(documents);
    if (options.json === true) {
      printJson(document);
    } else {
      printGpuRanks(screenOf(process.stdout), document, options);
    }
  }
}

function showOne(document: GpuJson, options: GpuOptions): void {
  if (options.json !== true) {
    printGpu(screenOf(process.stdout), document, options);
    return;
  }
  const chosen = <Site extends { bytes: number }>(sites: Site[], textOf: (site: Site) => string) =>
    selectRows(sites, options, 0, (site) => site.bytes, textOf).rows;
  const devices = document.devices.map((device) => ({
    ...device,
    sites: chosen(device.sites, siteText),
    growth: chosen(device.growth, siteText),
    peak: { ...device.peak, sites: chosen(device.peak.sites, siteText) },
  }));
  printJson({ ...document, devices });
}

function showTwo(a: GpuJson, b: GpuJson, options: GpuOptions): void {
  const document = compareSnapshots(a, b);
  if (options.json !== true) {
    printGpuDiff(screenOf(process.stdout), document, options);
    return;
  }
  const { rows } = selectRows(document.sites, options, 0, (site) => site.growthBytes, siteText);
  printJson({ ...document, sites: rows });
}
