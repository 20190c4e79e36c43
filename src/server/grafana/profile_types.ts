/** The types of memory profiles in Pyroscope's API. */
import { badUsage, oneLine } from "../../model/errors/errors.js";
import { type LabelMatcher, type ProfileFigure, STREAM_LABEL } from "../../store/index.js";

export interface MemoryType {
  readonly id: string;
  readonly sampleType: string;
  readonly unit: "bytes" | "count";
  readonly figure: ProfileFigure;
}

const type = (sampleType: string, unit: MemoryType["unit"], figure: ProfileFigure): MemoryType => ({
  id: `memory:${sampleType}:${unit}:space:bytes`,
  sampleType,
  unit,
  figure,
});

export const MEMORY_TYPES: readonly MemoryType[] = [
  type("alloc_objects", "count", "allocatedObjects"),
  type("alloc_space", "bytes", "allocatedBytes"),
  type("inuse_objects", "count", "liveObjects"),
  type("inuse_space", "bytes", "liveBytes"),
];

/** Throws TidemarkError. */
export function memoryType(id: string): MemoryType {
  const found = MEMORY_TYPES.find((one) => one.id === id);
  if (found === undefined) {
    throw badUsage(
      `the profile type ${oneLine(id, 80)} is not kept here`,
      `known are: ${MEMORY_TYPES.map((one) => one.id).join(", ")}`,
    );
  }
  return found;
}

const TYPE_LABEL = "__profile_type__";

/** Takes the matchers of the profile's type from those of its series. */
export function splitMatchers(matchers: readonly LabelMatcher[]): {
  readonly types: readonly MemoryType[];
  readonly matchers: readonly LabelMatcher[];
} {
  const ofType = matchers.filter(({ name }) => name === TYPE_LABEL);
  const types = MEMORY_TYPES.filter(({ id }) =>
    ofType.every(({ operator, value }) => {
      const isEqual = operator.endsWith("~") ? value.split("|").includes(id) : value === id;
      return operator.startsWith("!") ? !isEqual : isEqual;
    }),
  );
  return {
    types: ofType.length === 0 ? MEMORY_TYPES : types,
    matchers: matchers.filter(({ name }) => !name.startsWith("__") || name === STREAM_LABEL),
  };
}
