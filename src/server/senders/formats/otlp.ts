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
  FIGURES,
  type Figure,
  figureOf,
  malformed,
  type ReceivedProfile,
  type ReceivedSample,
  RequestBudget,
  timeOfNanos,
  withinLimit,
} from "./received_profile.js";
import { senderIdentity } from "./sender_identity.js";
import { pushNumbers, pushSigned, readMessage, WireType } from "./wire.js";

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
      readResource(reader.bytes(), listed);
    } else if (field === 2) {
      dictionary = readDictionary(reader.bytes());
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
  for (const { bytes, resource } of found === null ? [] : listed) {
    profiles.push(profileOf(readProfile(bytes, resource), found as OtlpDictionary, budget));
    await turns.next();
  }
  return joinProfiles(profiles);
}

/** A profile that is not read yet. */
interface ListedProfile {
  readonly bytes: Uint8Array;
  readonly resource: RawOtlpProfile["resource"];
}

function readResource(bytes: Uint8Array, into: ListedProfile[]): void {
  let resource: [string, string][] = [];
  const scopes: Uint8Array[] = [];
  readMessage(bytes, (field, _type, reader) => {
    if (field === 1) {
      resource = readPairs(reader.bytes());
    } else if (field === 2) {
      withinLimit("profiles-per-request", scopes.push(reader.bytes()));
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
      into.push({ bytes: reader.bytes(), resource });
      return true;
    });
  }
}

function readProfile(bytes: Uint8Array, resource: RawOtlpProfile["resource"]): RawOtlpProfile {
  const samples: RawOtlpSample[] = [];
  const profile = { type: 0, timeNanos: 0, durationNanos: 0, period: 0, id: "" };
  readMessage(bytes, (field, type, reader) => {
    switch (field) {
      case 1:
        profile.type = firstNumber(reader.bytes());
        return true;
      case 2:
        withinLimit("samples-per-profile", samples.length + 1);
        samples.push(readSample(reader.bytes()));
        return true;
      case 3:
        profile.timeNanos =
          type === WireType.Bit64 ? Number(reader.fixed64()) : Number(reader.uint64());
        return true;
      case 4:
        profile.durationNanos = Number(reader.uint64());
        return true;
      case 6:
        profile.period = Number(reader.int64());
        return true;
      case 7:
      case 8:
        // The id is 16 bytes; in older versions field 7 is a list and field 8 the id.
        if (type === WireType.LengthDelimited) {
          const id = reader.bytes();
          profile.id = id.length === 16 ? Buffer.from(id).toString("hex") : profile.id;
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
function firstNumber(bytes: Uint8Array): number {
  let number = 0;
  readMessage(bytes, (field, type, reader) => {
    if (field !== 1 || type !== WireType.Varint) {
      return false;
    }
    number = Number(reader.int64());
    return true;
  });
  return number;
}

function readSample(bytes: Uint8Array): RawOtlpSample {
  const sample: RawOtlpSample = {
    stack: 0,
    second: [],
    third: [],
    fourth: [],
    thirdIsNumber: false,
    fourthIsNumber: false,
    hasTimes: false,
  };
  readMessage(bytes, (field, type, reader) => {
    const isNumber = type === WireType.Varint;
    switch (field) {
      case 1:
        sample.stack = Number(reader.int64());
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
  let depths = 0;
  const samples = raw.samples.map((one): ReceivedSample => {
    const stack = dictionary.framesOf(one.stack);
    depths += stack.length;
    withinLimit("frames-per-profile", depths);
    budget.take("frames-per-request", stack.length);
    const value = valuesOf(one, older).reduce((sum, part) => sum + part, 0);
    const attributes = (older ? one.third : one.second).map(
      (index) => dictionary.attributes[index] ?? malformed("an attribute is not in the dictionary"),
    );
    withinLimit("sample-labels", attributes.length);
    return {
      frames: stack,
      thread: attributes.find(([key]) => key === "thread.name")?.[1] ?? "",
      labels: attributes.filter(([key]) => !key.startsWith("thread.")),
      ...figuresOf([value], [figure]),
    };
  });
  const content = JSON.stringify([raw.resource, type, raw.timeNanos]);
  return {
    source: "otlp",
    ...senderIdentity(raw.resource),
    samples,
    figures: figure === null ? [] : [figure],
    timeMs: timeOfNanos(raw.timeNanos),
    durationMs: Math.round(raw.durationNanos * MS_PER_NANO),
    periodBytes: Math.max(0, raw.period),
    id:
      raw.id === "" || /^0+$/.test(raw.id)
        ? createHash("sha256").update(content).update(JSON.stringify(samples)).digest("hex")
        : `${raw.id} ${type}`,
  };
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
      samples: [...first.samples, ...profile.samples],
      figures: FIGURES.filter((figure) => figures.has(figure)),
      id: `${first.id} ${profile.id}`,
    };
  }
  return joined;
}

function areDisjoint(a: ReceivedProfile, b: ReceivedProfile): boolean {
  return !a.figures.some((figure) => b.figures.includes(figure));
}
