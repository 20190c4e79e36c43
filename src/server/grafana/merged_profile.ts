/** A window's profile in pprof's format, as `SelectMergeProfile` answers: for `profilecli` and `go tool pprof`. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { float64At, itemAt, uint32At, wholeNumbers } from "../../model/base/columns.js";
import { framesOf } from "../../model/profile/frame_text.js";
import type { Window, WindowProfile } from "../../store/index.js";
import type { MemoryType } from "./profile_types.js";
import type { PprofProfileSchema } from "./querier_pb.js";

const NANOS_PER_MS = 1_000_000n;

/** Values are whole bytes or objects, which add up to the rounded sum; stacks whose value is 0 are left out. */
export function pprofMessage(
  { tables, snapshot: { sites } }: WindowProfile,
  { figure, sampleType, unit }: MemoryType,
  { startMs, endMs }: Window,
): MessageInitShape<typeof PprofProfileSchema> {
  const strings = new Numbers([""]);
  const functions = new Numbers<string>();
  const locations = new Numbers<number>();
  const frames = tables.frames;
  const functionOf = (frame: number) =>
    functions.of(`${uint32At(frames.function, frame)},${uint32At(frames.file, frame)}`);
  const text = (index: number) => BigInt(strings.of(itemAt(tables.strings, index)));
  const whole = wholeNumbers(sites[figure]);
  const sample = Array.from({ length: sites.length }, (_, site) => ({
    locationId: framesOf(tables, uint32At(sites.stack, site)).map((frame) =>
      BigInt(locations.of(frame) + 1),
    ),
    value: [BigInt(float64At(whole, site))],
  })).filter(({ value: [value] }) => value !== 0n);
  const valueType = (type: string) => ({
    type: BigInt(strings.of(type)),
    unit: BigInt(strings.of(type === "space" ? "bytes" : unit)),
  });
  const location = locations.all.map((frame, at) => ({
    id: BigInt(at + 1),
    line: [
      { functionId: BigInt(functionOf(frame) + 1), line: BigInt(uint32At(frames.line, frame)) },
    ],
  }));
  const pprofFunction = functions.all.map((key, at) => {
    const [name = 0, file = 0] = key.split(",").map(Number);
    return { id: BigInt(at + 1), name: text(name), systemName: text(name), filename: text(file) };
  });
  return {
    sampleType: [valueType(sampleType)],
    sample,
    location,
    function: pprofFunction,
    timeNanos: BigInt(Math.round(startMs)) * NANOS_PER_MS,
    durationNanos: BigInt(Math.round(endMs - startMs)) * NANOS_PER_MS,
    periodType: valueType("space"),
    stringTable: strings.all,
  };
}

/** Numbers items in the order in which they occur. */
class Numbers<Item> {
  readonly all: Item[];
  readonly #known: Map<Item, number>;

  constructor(first: readonly Item[] = []) {
    this.all = [...first];
    this.#known = new Map(this.all.map((item, at) => [item, at]));
  }

  of(item: Item): number {
    let number = this.#known.get(item);
    if (number === undefined) {
      number = this.all.push(item) - 1;
      this.#known.set(item, number);
    }
    return number;
  }
}
