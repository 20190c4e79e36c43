/** What the cell under the pointer or the keyboard's cursor says. */
import type { HeatMapAnswer } from "../../../../src/model/wire/heat_map.js";
import {
  formatBytes,
  formatShare,
  formatSignedBytes,
  formatWallClock,
} from "../../format/numbers.js";
import { type HeatBox, type HeatCell, type HeatRows, rowName } from "./heatRows.js";

const WIDTH = 250;
const GAP = 14;

interface HeatReadoutProps {
  answer: HeatMapAnswer;
  shown: HeatRows;
  box: HeatBox;
  cell: HeatCell;
  /** Of the whole map, in CSS pixels. */
  width: number;
}

export function HeatReadout({ answer, shown, box, cell, width }: HeatReadoutProps) {
  const [name, time, value, ...more] = readoutText(answer, shown, cell);
  const x = box.left + ((cell.step + 0.5) / shown.steps) * box.width;
  const isLeft = x + GAP + WIDTH > width;
  const left = Math.max(0, isLeft ? x - GAP - WIDTH : x + GAP);
  const bottom = box.top + box.rowHeight * shown.rows.length;
  const y = box.top + (cell.row + 0.5) * box.rowHeight;
  const isLow = y > bottom / 2;
  return (
    <div
      className={`heat-readout${isLow ? " above" : ""}`}
      style={{ left, top: isLow ? y - GAP : y + GAP, width: WIDTH }}
      aria-hidden="true"
    >
      <b>{name}</b>
      <span>{time}</span>
      <strong>{value}</strong>
      {more.map((line) => (
        <span key={line}>{line}</span>
      ))}
    </div>
  );
}

/** Name, time, value, and more if there is more to say. */
export function readoutText(
  { startMs, stepMs, name }: HeatMapAnswer,
  { rows, whole, scale }: HeatRows,
  { row, step }: HeatCell,
): string[] {
  const found = rows[row];
  if (found === undefined) {
    return [];
  }
  const { version, host, values, odd, limitBytes } = found;
  const value = values[step] ?? null;
  const all = whole[row] ?? 0;
  const place = [version === "" ? "" : `version ${version}`, host === "" ? "" : `on ${host}`];
  return [
    rowName(found),
    `${formatWallClock(startMs + step * stepMs, true)} to ${formatWallClock(startMs + (step + 1) * stepMs, true)}`,
    value === null
      ? "did not report"
      : `${formatBytes(value)} ${name === "rssBytes" ? "RSS" : "live"}`,
    ...(value === null || all === 0
      ? []
      : [
          `${formatShare(value / all)} of ${scale === "limit" ? `its limit, ${formatBytes(limitBytes)}` : `the largest, ${formatBytes(all)}`}`,
        ]),
    ...(odd === undefined
      ? []
      : [
          `odd: ${formatSignedBytes(odd.differenceBytes)} against the median of ${odd.siblings} others`,
        ]),
    place.filter((part) => part !== "").join(" "),
  ].filter((line) => line !== "");
}
