/** A row of the table of messages (message_table.ts), and the reader of one. */
import { formatBytesLikePyTorch } from "../../../model/base/numbers.js";
import type { Bytes } from "../../../model/base/units.js";
import { bytesOf } from "./message_sizes.js";
import { type Found, judgeFigures } from "./message_verdict.js";
import { type OomFigures, type OomReading, type OomVerdict, reading } from "./oom_reading.js";

/** A message with a fixed wording: its figures are the groups of a pattern, its verdict follows from them. */
export interface MessageRow {
  readonly framework: OomReading["framework"];
  /** "" if the framework itself writes the message. */
  readonly library: string;
  /** Matches where the message begins in a line. */
  readonly start: RegExp;
  /** Whether the start itself may be wrapped, so that `text` alone decides. */
  readonly startWraps?: true;
  /**
   * Matched against the message without white space (`words`). Groups that are named as figures are these
   * figures, the group `device` is the device. Without it, `start` decides and there are no figures.
   */
  readonly text?: RegExp;
  /** Whether `start` alone is an event, for a message whose figures are optional. */
  readonly figuresOptional?: true;
  /** Searched in the same way, for groups outside `text`. */
  readonly elsewhere?: readonly RegExp[];
  /** The unit of figures that are printed without one; default: bytes. */
  readonly unit?: "GiB";
  /** Figures that are computed from groups. */
  readonly computed?: (found: Found) => Partial<OomFigures>;
  readonly memory?: OomReading["memory"] | ((found: Found) => OomReading["memory"]);
  /** Default: from request and free memory. */
  readonly verdict?: OomVerdict | ((found: Found, figures: Partial<OomFigures>) => OomVerdict);
}

/** The pattern of a message: its literal text, of which white space is removed, with groups in between. */
export function words(literal: TemplateStringsArray, ...groups: string[]): RegExp {
  const parts = literal.raw.map((part) => part.replace(/\s+/g, ""));
  return new RegExp(String.raw({ raw: parts }, ...groups));
}

/** @param squeezed `text` without white space; null if it is not this message */
export function readRow(row: MessageRow, text: string, squeezed: string): OomReading | null {
  if (row.startWraps === undefined && !row.start.test(text)) {
    return null;
  }
  const match = row.text?.exec(squeezed) ?? null;
  const { framework, library } = row;
  if (match === null && row.text !== undefined) {
    return row.figuresOptional === true
      ? reading(judgeFigures({}), {}, { framework, library })
      : null;
  }
  const found = foundIn(row, squeezed, match);
  const figures = { ...figuresOf(found), ...row.computed?.(found) };
  const verdict =
    typeof row.verdict === "function"
      ? row.verdict(found, figures)
      : (row.verdict ?? judgeFigures(figures));
  const memory = typeof row.memory === "function" ? row.memory(found) : row.memory;
  const device = found.text("device");
  return reading(verdict, figures, {
    framework,
    library,
    memory: memory ?? "device",
    device: device === "" ? null : Number(device),
  });
}

function foundIn(row: MessageRow, squeezed: string, match: RegExpExecArray | null): Found {
  const others = (row.elsewhere ?? []).map((pattern) => pattern.exec(squeezed)?.groups);
  const groups: Record<string, string | undefined> = Object.assign({}, match?.groups, ...others);
  const bytes = (name: string): Bytes | null => {
    const figure = groups[name]?.replaceAll(",", "");
    return figure === undefined
      ? null
      : bytesOf(figure, groups[`${name}Unit`] ?? row.unit ?? "bytes");
  };
  return {
    text: (name) => groups[name] ?? "",
    bytes,
    size: (name) => {
      const figure = bytes(name);
      return figure === null ? "" : formatBytesLikePyTorch(figure);
    },
  };
}

function figuresOf({ bytes }: Found): Partial<OomFigures> {
  return {
    requestedBytes: bytes("requestedBytes"),
    totalBytes: bytes("totalBytes"),
    freeBytes: bytes("freeBytes"),
    allocatedBytes: bytes("allocatedBytes"),
    allowedBytes: bytes("allowedBytes"),
  };
}
