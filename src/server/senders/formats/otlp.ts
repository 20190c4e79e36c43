/**
 * OTLP profiles (opentelemetry-proto, profiles/v1development). Two numberings of Sample are in use, distinguished by
 * wire type:
 *
 *     1.10 and later  stack 1, attribute_indices 2, link 3 (a number), values 4 (a list)
 *     up to 1.9       stack 1, values 2, attribute_indices 3 (a list), link 4 (a number)
 *
 * One Profile has one sample type; profiles of the same process and time are joined by {@link joinProfiles}.
 */
import { createHash } from "node:crypto";
import { Turns } from "../../../model/base/turns.js";
import { type OtlpDictionary, readDictionary, readPairs } from "./otlp_dictionary.js";
import { figuresOf } from "./pprof.js";
import {
  figureOf,
  malformed,
  type ReceivedProfile,
  RequestBudget,
  timeOfNanos,
  withinLimit,
} from "./received_profile.js";
import {
  FIGURES,
  type Figure,
  joinedSamples,
  type ReceivedFrame,
  type ReceivedSamples,
  SampleCollector,
  type StackPlace,
} from "./received_samples.js";
import { senderIdentity } from "./sender_identity.js";
import { pushNumbers, pushSigned, readMessage, type WireReader, WireType } from "./wire.js";

const MS_PER_NANO = 1e-6;
const MOST_LISTED = 10_000;

interface RawOtlpSample {
  stack: number;
  readonly second: number[];
  readonly third: number[];
  readonly fourth: number[];
  thirdIsNumber: boolean;
  fourthIsNumber: boolean;
  hasTimes: boolean;
}

interface RawOtlpProfile {
  type: number;
  readonly samples: RawOtlpSample[];
  timeNanos: number;
  durationNanos: number;
  period: number;
  id: string;
  readonly resource: readonly (readonly [string, string])[];
}

/** An ExportProfilesServiceRequest{resource_profiles=1, dictionary=2}. Throws TidemarkError. */
export async function decodeOtlp(body: Buffer): Promise<ReceivedProfile[]> {
  let dictionary: OtlpDictionary | null = null;
  const listed: ListedProfile[] = [];
  readMessage(body, (field, _type, reader) => {
    if (field === 1) {
      readResource(reader.message(), listed);
    } else if (field === 2) {
      dictionary = readDictionary(reader.message());
    } else {
      return false;
    }
    return true;
  });
  if (listed.length > 0 && dictionary === null) {
    malformed("the request has no dictionary");
  }
  const found = dictionary as OtlpDictionary | null;
  const budget = new RequestBudget();
  const turns = new Turns();
  const profiles: ReceivedProfile[] = [];
  for (const { message, resource } of found === null ? [] : listed) {
    profiles.push(profileOf(readProfile(message, resource), found as OtlpDictionary, budget));
    await turns.next();
  }
  return joinProfiles(profiles);
}

/** A profile that is not read yet. */
interface ListedProfile {
  readonly message: WireReader;
  readonly resource: RawOtlpProfile["resource"];
}

function readResource(message: WireReader, into: ListedProfile[]): void {
  let resource: [string, string][] = [];
  const scopes: WireReader[] = [];
  readMessage(message, (field, _type, reader) => {
    if (field === 1) {
      resource = readPairs(reader.message());
    } else if (field === 2) {
      withinLimit("profiles-per-request", scopes.push(reader.message()));
    } else {
      return false;
    }
    return true;
  });
  for (const scope of scopes) {
    readMessage(scope, (field, _type, reader) => {
      if (field !== 2) {
        return false;
      }
      withinLimit("profiles-per-request", into.length + 1);
      into.push({ message: reader.message(), resource });
      return true;
    });
  }
}

function readProfile(message: WireReader, resource: RawOtlpProfile["resource"]): RawOtlpProfile {
  const samples: RawOtlpSample[] = [];
  const profile = { type: 0, timeNanos: 0, durationNanos: 0, period: 0, id: "" };
  readMessage(message, (field, type, reader) => {
    switch (field) {
      case 1:
        profile.type = firstNumber(reader.message());
        return true;
      case 2:
        withinLimit("samples-per-profile", samples.length + 1);
        samples.push(readSample(reader.message()));
        return true;
      case 3:
        profile.timeNanos = type === WireType.Bit64 ? reader.fixed64() : reader.unsigned();
        return true;
      case 4:
        profile.durationNanos = reader.unsigned();
        return true;
      case 6:
        profile.period = reader.signed();
        return true;
      case 7:
      case 8:
        // The id is 16 bytes; in older versions field 7 is a list and field 8 the id.
        if (type === WireType.LengthDelimited) {
          const id = reader.bytes();
          profile.id = id.length === 16 ? id.toString("hex") : profile.id;
          return true;
        }
        return false;
      default:
        return false;
    }
  });
  return { ...profile, samples, resource };
}

/** Field 1 of a ValueType: the index of its name. */
function firstNumber(message: WireReader): number {
  let number = 0;
  readMessage(message, (field, type, reader) => {
    if (field !== 1 || type !== WireType.Varint) {
      return false;
    }
    number = reader.signed();
    return true;
  });
  return number;
}

function readSample(message: WireReader): RawOtlpSample {
  const sample: RawOtlpSample = {
    stack: 0,
    second: [],
    third: [],
    fourth: [],
    thirdIsNumber: false,
    fourthIsNumber: false,
    hasTimes: false,
  };
  readMessage(message, (field, type, reader) => {
    const isNumber = type === WireType.Varint;
    switch (field) {
      case 1:
        sample.stack = reader.signed();
        return true;
      case 2:
        pushSigned(sample.second, type, reader);
        return sample.second.length <= MOST_LISTED || malformed("a sample has too many values");
      case 3:
        sample.thirdIsNumber = isNumber;
        pushNumbers(sample.third, type, reader, MOST_LISTED);
        return true;
      case 4:
        sample.fourthIsNumber = isNumber;
        pushSigned(sample.fourth, type, reader);
        return sample.fourth.length <= MOST_LISTED || malformed("a sample has too many values");
      case 5:
        sample.hasTimes = true;
        return false;
      default:
        return false;
    }
  });
  return sample;
}

/** Whether a profile's samples have the numbering up to 1.9. */
function isOlder(samples: readonly RawOtlpSample[]): boolean {
  for (const { second, third, fourth, thirdIsNumber, fourthIsNumber, hasTimes } of samples) {
    if ((fourth.length > 0 && !fourthIsNumber) || (third.length > 0 && thirdIsNumber)) {
      return false;
    }
    if (third.length > 0 || fourth.length > 0) {
      return true;
    }
    if (second.length > 0 && !hasTimes) {
      return true;
    }
  }
  return false;
}

function profileOf(
  raw: RawOtlpProfile,
  dictionary: OtlpDictionary,
  budget: RequestBudget,
): ReceivedProfile {
  budget.take("samples-per-request", raw.samples.length);
  const type = dictionary.strings[raw.type] ?? malformed("a sample type is not in its table");
  const figure = figureOf(type);
  const older = isOlder(raw.samples);
  if (raw.samples.length > 0 && raw.samples.every((one) => valuesOf(one, older).length === 0)) {
    malformed("all its samples are without values: they were written by another version of OTLP");
  }
  const samples = samplesOf(raw, { dictionary, budget, figure, older });
  const content = JSON.stringify([raw.resource, type, raw.timeNanos]);
  return {
    source: "otlp",
    ...senderIdentity(raw.resource),
    samples,
    figures: figure === null ? [] : [figure],
    timeMs: timeOfNanos(raw.timeNanos),
    durationMs: Math.round(raw.durationNanos * MS_PER_NANO),
    periodBytes: Math.max(0, raw.period),
    id: raw.id === "" || /^0+$/.test(raw.id) ? hashOf(content, samples) : `${raw.id} ${type}`,
  };
}

function samplesOf(
  raw: RawOtlpProfile,
  {
    dictionary,
    budget,
    figure,
    older,
  }: {
    readonly dictionary: OtlpDictionary;
    readonly budget: RequestBudget;
    readonly figure: Figure | null;
    readonly older: boolean;
  },
): ReceivedSamples {
  const samples = new SampleCollector();
  const placeOf = stackPlaces(samples, dictionary);
  let depths = 0;
  for (const one of raw.samples) {
    const place = placeOf(one.stack);
    const depth = place.end - place.start;
    depths += depth;
    withinLimit("frames-per-profile", depths);
    budget.take("frames-per-request", depth);
    const value = valuesOf(one, older).reduce((sum, part) => sum + part, 0);
    const attributes = (older ? one.third : one.second).map(
      (index) => dictionary.attributes[index] ?? malformed("an attribute is not in the dictionary"),
    );
    withinLimit("sample-labels", attributes.length);
    const thread = attributes.find(([key]) => key === "thread.name")?.[1] ?? "";
    const labels = attributes.filter(([key]) => !key.startsWith("thread."));
    samples.addSample(
      place,
      samples.threadRow(thread),
      samples.labelsRow(labels),
      figuresOf([value], [figure]),
    );
  }
  return samples.samples();
}

/** The frames of a stack, which are added when a sample first has them. */
function stackPlaces(
  samples: SampleCollector,
  dictionary: OtlpDictionary,
): (stack: number) => StackPlace {
  const rows = new Map<ReceivedFrame, number>();
  const places = new Map<number, StackPlace>();
  return (stack) => {
    let place = places.get(stack);
    if (place === undefined) {
      const start = samples.framesPushed;
      for (const frame of dictionary.framesOf(stack)) {
        let row = rows.get(frame);
        if (row === undefined) {
          row = samples.addFrame(frame);
          rows.set(frame, row);
        }
        samples.pushFrame(row);
      }
      place = { start, end: samples.framesPushed };
      places.set(stack, place);
    }
    return place;
  };
}

/** Of a profile without an id: the same content has the same one. */
function hashOf(content: string, samples: ReceivedSamples): string {
  const hash = createHash("sha256").update(content);
  for (const column of Object.values(samples)) {
    const isTyped = column instanceof Uint32Array || column instanceof Float64Array;
    hash.update(isTyped ? column : JSON.stringify(column));
  }
  return hash.digest("hex");
}

function valuesOf({ second, fourth }: RawOtlpSample, older: boolean): readonly number[] {
  return older ? second : fourth;
}

/** Profiles of one process at one time whose types differ become one: bytes and objects of a stack belong together. */
function joinProfiles(profiles: readonly ReceivedProfile[]): ReceivedProfile[] {
  const joined: ReceivedProfile[] = [];
  const places = new Map<string, number>();
  for (const profile of profiles) {
    const key = JSON.stringify([profile.identity, profile.host, profile.pid, profile.timeMs]);
    const place = places.get(key);
    const first = place === undefined ? undefined : joined[place];
    if (place === undefined || first === undefined || !areDisjoint(first, profile)) {
      places.set(key, joined.push(profile) - 1);
      continue;
    }
    const figures = new Set<Figure>([...first.figures, ...profile.figures]);
    joined[place] = {
      ...first,
      samples: joinedSamples(first.samples, profile.samples),
      figures: FIGURES.filter((figure) => figures.has(figure)),
      id: `${first.id} ${profile.id}`,
    };
  }
  return joined;
}

function areDisjoint(a: ReceivedProfile, b: ReceivedProfile): boolean {
  return !a.figures.some((figure) => b.figures.includes(figure));
}
