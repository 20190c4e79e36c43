/** What the reader selected; all views use it. */

import type { ReportDocument } from "../../../src/model/documents/report_document.js";
import type { SummaryJson } from "../../../src/model/documents/summary_document.js";
import { isUnknown } from "../../../src/model/profile/imported.js";
import type { SiteValue } from "../../../src/model/profile/profile.js";
import { EVERY_ROW, type RowCondition } from "../../../src/model/profile/row_filter.js";

const TABS = ["flame", "sites", "ages", "lifetimes", "processes", "diagnosis", "source"] as const;
export type Tab = (typeof TABS)[number];

/**
 * Documents without a verdict have no diagnosis tab, those without source text no source tab. Files of other tools
 * contain neither ages nor lifetimes.
 */
export function tabsOf({ diagnosis, sources, summary }: ReportDocument): readonly Tab[] {
  const absent = {
    ages: summary.imported !== undefined,
    lifetimes: summary.imported !== undefined,
    diagnosis: diagnosis === undefined,
    source: sources === undefined,
  };
  return TABS.filter((tab) => !(tab in absent) || !absent[tab as keyof typeof absent]);
}

export const TAB_NAMES: Record<Tab, string> = {
  flame: "Flame graph",
  sites: "Sites",
  ages: "Ages",
  lifetimes: "Lifetimes",
  processes: "Processes",
  diagnosis: "Diagnosis",
  source: "Source",
};

export type ColourMode = "allocator" | "frame" | "file";
/** What a rectangle's width shows while two snapshots are compared. */
export type DifferenceWidth = "growth" | "after" | "before";

export interface Choices {
  readonly tab: Tab;
  readonly value: SiteValue;
  /** Indexes of snapshots; `base` is null without a comparison. */
  readonly at: number;
  readonly base: number | null;
  readonly filter: readonly RowCondition[];
  readonly reversed: boolean;
  readonly rootsBelow: boolean;
  readonly colourMode: ColourMode;
  readonly differenceWidth: DifferenceWidth;
  readonly search: string;
}

type Figure = "live" | "peak" | "allocated";

/** The figures and units that the recording knows: an imported file may lack some, which are stored as 0. */
export function knownValues(imported: SummaryJson["imported"]): {
  figures: readonly Figure[];
  units: readonly ("Bytes" | "Objects")[];
} {
  const all: readonly Figure[] = ["live", "peak", "allocated"];
  return {
    figures: all.filter((figure) => !isUnknown(imported, figure)),
    units: isUnknown(imported, "objects") ? ["Bytes"] : ["Bytes", "Objects"],
  };
}

/** Starts at snapshot `at`, with the first figure that is known. */
export function firstChoices(at: number, imported: SummaryJson["imported"]): Choices {
  return {
    tab: "flame",
    value: `${knownValues(imported).figures[0] ?? "live"}Bytes`,
    at,
    base: null,
    filter: EVERY_ROW,
    reversed: false,
    rootsBelow: false,
    colourMode: isUnknown(imported, "python") ? "file" : "allocator",
    differenceWidth: "growth",
    search: "",
  };
}

export type Choose = (change: Partial<Choices>) => void;

export function isObjects(value: SiteValue): boolean {
  return value.endsWith("Objects");
}
