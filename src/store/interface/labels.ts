/** Selecting series by their labels, as Pyroscope's and Prometheus' selectors do. A label that is missing is "". */
import type { Millis } from "../../model/base/units.js";
import type { Window } from "./window.js";

/** Used like a label: the instance, by the name of its stream. */
export const STREAM_LABEL = "__stream__";

export interface LabelMatcher {
  readonly name: string;
  readonly operator: "=" | "!=" | "=~" | "!~";
  /** For the last two a regular expression that must match the whole value (RE2). */
  readonly value: string;
}

/** Series with a profile that was taken in the window, or is valid in it, that all matchers fit. */
export interface LabelQuery extends Window {
  readonly matchers: readonly LabelMatcher[];
}

/** Of a profile: what is live is a gauge, what is allocated a sum. */
export type ProfileFigure = "liveBytes" | "liveObjects" | "allocatedBytes" | "allocatedObjects";

export interface FigureSeriesQuery extends LabelQuery {
  readonly figure: ProfileFigure;
  readonly groupBy: readonly string[];
  readonly stepMs: Millis;
}

export interface FigureSeries {
  /** Values of the labels of `groupBy`, in its order. */
  readonly group: readonly string[];
  /** By step; null if no instance reported. */
  readonly values: readonly (number | null)[];
}
