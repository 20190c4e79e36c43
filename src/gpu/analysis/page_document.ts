/** The page of a snapshot: its replays as columns, and the texts of the screen. */
import type { GpuJson } from "../../model/documents/gpu/gpu_document.js";
import {
  GPU_CATEGORIES,
  type GpuDiffPageDocument,
  type GpuPageDevice,
  type GpuPageDocument,
} from "../../model/documents/gpu/gpu_page.js";
import type { GpuSnapshot } from "../../model/gpu/gpu_snapshot.js";
import { devicesOf, replayDevice } from "../replay/replay.js";
import { adviceFor, analyseDevice, limitsOf } from "./analyse.js";
import { categories } from "./category.js";

/** Number of sites in the page's text summary; the graphs are drawn from the columns. */
const MOST_SITES = 200;

export function pageDocument(snapshot: GpuSnapshot, file: string, title: string): GpuPageDocument {
  const replays = devicesOf(snapshot).map((device) => replayDevice(snapshot, device));
  const analysed = replays.map((replay) => analyseDevice(snapshot, replay));
  const summary: GpuJson = {
    schema: "tidemark.gpu/1",
    file,
    devices: analysed.map((device) => ({
      ...device,
      sites: device.sites.slice(0, MOST_SITES),
      peak: { ...device.peak, sites: device.peak.sites.slice(0, MOST_SITES) },
    })),
    advice: adviceFor(snapshot, analysed),
    limits: limitsOf(snapshot, analysed),
  };
  const { strings, frames, stacks, streams } = snapshot;
  return {
    schema: "tidemark.gpuPage/1",
    title,
    summary,
    tables: { strings, frames, stacks, streams },
    devices: replays.map((replay): GpuPageDevice => {
      const categoryOf = categories(snapshot, replay);
      const { firstEvent, events } = replay;
      return {
        replay,
        action: snapshot.events.action.slice(firstEvent, firstEvent + events),
        timeUs: snapshot.events.timeUs.slice(firstEvent, firstEvent + events),
        category: Uint8Array.from({ length: replay.allocations.length }, (_, row) =>
          GPU_CATEGORIES.indexOf(categoryOf(row).category),
        ),
      };
    }),
  };
}

/** Two pages in one; devices are compared by number. */
export function diffPageDocument(a: GpuPageDocument, b: GpuPageDocument): GpuDiffPageDocument {
  return { schema: "tidemark.gpuDiffPage/1", title: `${a.title} → ${b.title}`, a, b };
}
