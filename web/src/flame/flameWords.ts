/** Text of the flame graph. */
import { uint32At } from "../../../src/model/base/columns.js";
import type { ReportDocument } from "../../../src/model/documents/report_document.js";
import { type Choices, isObjects, knownValues } from "../choices/choices.js";
import { noSamples } from "../format/absent.js";
import { frameWords } from "../frames/frameNames.js";
import type { FlameGraph } from "./flameGraph.js";

/** The text in a rectangle. */
export function labelOf(
  report: ReportDocument,
  flame: FlameGraph,
  position: number,
  choices: Choices,
) {
  if (position === 0) {
    return { name: `all ${describe(choices)}`, place: "" };
  }
  const words = frameWords(
    report.tables,
    uint32At(flame.graph.frame, uint32At(flame.layout.node, position)),
  );
  return { name: words.function, place: words.place };
}

/** The chosen value: "live bytes". */
export function describe({ value }: Choices): string {
  const unit = isObjects(value) ? "objects" : "bytes";
  return value.startsWith("live")
    ? `live ${unit}`
    : value.startsWith("peak")
      ? `${unit} at the peak`
      : `allocated ${unit}`;
}

/** Why there is nothing to draw. */
export function emptyWords(report: ReportDocument, choices: Choices, compared: boolean): string {
  const { filter } = choices;
  if (compared && choices.differenceWidth === "growth") {
    return "Nothing grew between these two snapshots.";
  }
  const filtered = Object.values(filter).some((part) => part !== null);
  if (filtered) {
    return `No ${describe(choices)} pass these filters.`;
  }
  const { imported } = report.summary;
  const hasProfile =
    imported === undefined
      ? report.summary.agent.samples > 0
      : knownValues(imported).figures.length > 0;
  return hasProfile ? `This snapshot has no ${describe(choices)}.` : noSamples(imported);
}
