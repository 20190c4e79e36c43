/** Figures of source lines that no single snapshot has: the highest live bytes of a line, and the bytes it copied. */
import { addAt, float64At, uint32At } from "../../model/base/columns.js";
import type { Bytes, StackId } from "../../model/base/units.js";
import type { FrameJson } from "../../model/documents/documents.js";
import type { LineFigures } from "../../model/profile/imported.js";
import type { Profile, SiteTable } from "../../model/profile/profile.js";
import type { Moment, Recording } from "../../recording/types.js";
import { StackNames } from "./rows/profile_sites.js";

/** The line that a stack counts for; leaf first; undefined: for none. */
type LineOfStack = (stack: readonly FrameJson[]) => FrameJson | undefined;

/**
 * For each line: its highest live bytes in any snapshot, or at the peak of the program, and the bytes that it had
 * copied until `moment` (null if copies were not counted). A line that was large only between two snapshots is not
 * known to have been. @internal
 */
export function lineFigures(
  recording: Recording,
  moment: Moment,
  lineOf: LineOfStack,
): LineFigures[] {
  const lines = new LineTable(lineOf);
  for (let index = 0; index < recording.snapshots.length; index++) {
    const profile = recording.profileOf(index);
    lines.raise(profile, profile.sites);
  }
  const peak = recording.profileAt("peak");
  lines.raise(peak, peak.sites);
  const now = recording.profileAt(moment);
  lines.copy(now, now.copies);
  return lines.figures(now.copies.length > 0);
}

class LineTable {
  readonly #lineOf: LineOfStack;
  /** The dictionaries of a recording only grow: a stack keeps its number in all snapshots. */
  readonly #lineOfStack = new Map<StackId, number>();
  readonly #ids = new Map<string, number>();
  readonly #frames: FrameJson[] = [];
  readonly #peaks: Bytes[] = [];
  readonly #copied: Bytes[] = [];

  constructor(lineOf: LineOfStack) {
    this.#lineOf = lineOf;
  }

  raise(profile: Profile, sites: SiteTable): void {
    this.#sum(profile, sites, sites.liveBytes).forEach((bytes, line) => {
      this.#peaks[line] = Math.max(this.#peaks[line] ?? 0, bytes);
    });
  }

  copy(profile: Profile, copies: SiteTable): void {
    this.#sum(profile, copies, copies.allocatedBytes).forEach((bytes, line) => {
      this.#copied[line] = bytes;
    });
  }

  figures(copiesCounted: boolean): LineFigures[] {
    return this.#frames.map(({ file, line, function: name }, id) => ({
      file,
      line,
      function: name,
      peakBytes: this.#peaks[id] ?? 0,
      copiedBytes: copiesCounted ? (this.#copied[id] ?? 0) : null,
    }));
  }

  /** The sum of a column by line. */
  #sum(profile: Profile, sites: SiteTable, column: Float64Array): Float64Array {
    const names = new StackNames(profile);
    const rows = Array.from({ length: sites.length }, (_, row) =>
      this.#line(uint32At(sites.stack, row), names),
    );
    const sums = new Float64Array(this.#frames.length);
    rows.forEach((line, row) => {
      if (line >= 0) {
        addAt(sums, line, float64At(column, row));
      }
    });
    return sums;
  }

  /** -1: the stack counts for no line. */
  #line(stack: StackId, names: StackNames): number {
    let line = this.#lineOfStack.get(stack);
    if (line === undefined) {
      const frame = this.#lineOf(names.frames(stack));
      line = frame === undefined ? -1 : this.#number(frame);
      this.#lineOfStack.set(stack, line);
    }
    return line;
  }

  #number(frame: FrameJson): number {
    const key = JSON.stringify([frame.file, frame.line, frame.function]);
    let number = this.#ids.get(key);
    if (number === undefined) {
      number = this.#frames.push(frame) - 1;
      this.#ids.set(key, number);
    }
    return number;
  }
}
