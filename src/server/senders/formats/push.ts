/**
 * Pyroscope's push API (push.v1.PusherService/Push): PushRequest{series=1}, RawProfileSeries{labels=1, samples=2},
 * LabelPair{name=1, value=2}, RawSample{raw_profile=1, ID=2}; or the same as JSON.
 */
import { createHash } from "node:crypto";
import { Turns } from "../../../model/base/turns.js";
import { plainProfile } from "./body.js";
import { decodePprof } from "./pprof.js";
import {
  type DecodedProfile,
  malformed,
  type ReceivedProfile,
  RequestBudget,
  withinLimit,
} from "./received_profile.js";
import { senderIdentity } from "./sender_identity.js";
import { readMessage, type WireReader } from "./wire.js";

interface PushedSeries {
  readonly labels: [string, string][];
  readonly samples: { readonly profile: Buffer; readonly id: string }[];
}

/** Throws TidemarkError. */
export async function decodePush(body: Buffer, isJson: boolean): Promise<ReceivedProfile[]> {
  const budget = new RequestBudget();
  const turns = new Turns();
  const profiles: ReceivedProfile[] = [];
  for (const { labels, samples } of isJson ? seriesOfJson(body) : seriesOfMessage(body)) {
    const identity = senderIdentity(labels);
    for (const { profile, id } of samples) {
      profiles.push({
        source: "pyroscope",
        ...identity,
        ...decodedWithin(budget, profile),
        id: id === "" ? createHash("sha256").update(profile).digest("hex") : id,
      });
      await turns.next();
    }
  }
  return profiles;
}

function decodedWithin(budget: RequestBudget, profile: Buffer): DecodedProfile {
  const plain = plainProfile(profile);
  budget.take("inflated-bytes-per-request", plain.length);
  const decoded = decodePprof(plain);
  budget.takeSamples(decoded.samples);
  return decoded;
}

function seriesOfMessage(body: Buffer): PushedSeries[] {
  const all: PushedSeries[] = [];
  let profiles = 0;
  readMessage(body, (field, _type, reader) => {
    if (field !== 1) {
      return false;
    }
    const series: PushedSeries = { labels: [], samples: [] };
    readMessage(reader.message(), (part, _partType, inner) => {
      if (part === 1) {
        const [name, value] = readTexts(inner.message());
        series.labels.push([name, value]);
        withinLimit("sample-labels", series.labels.length - 30);
      } else if (part === 2) {
        profiles += 1;
        withinLimit("profiles-per-request", profiles);
        series.samples.push(readSample(inner.message()));
      } else {
        return false;
      }
      return true;
    });
    withinLimit("profiles-per-request", all.push(series));
    return true;
  });
  return all;
}

function readSample(message: WireReader): PushedSeries["samples"][number] {
  let profile: Buffer = Buffer.alloc(0);
  let id = "";
  readMessage(message, (field, _type, reader) => {
    if (field === 1) {
      profile = reader.bytes();
    } else if (field === 2) {
      id = reader.string();
    } else {
      return false;
    }
    return true;
  });
  return { profile, id };
}

/** Fields 1 and 2 of a message of two texts. */
function readTexts(message: WireReader): [string, string] {
  const texts: [string, string] = ["", ""];
  readMessage(message, (field, _type, reader) => {
    if (field !== 1 && field !== 2) {
      return false;
    }
    texts[field - 1] = reader.string();
    return true;
  });
  return texts;
}

function seriesOfJson(body: Buffer): PushedSeries[] {
  let request: unknown;
  try {
    request = JSON.parse(body.toString("utf8"));
  } catch {
    return malformed("it is not JSON");
  }
  const all = listIn(request, "series");
  withinLimit("profiles-per-request", all.length);
  const profiles = all.reduce<number>((sum, series) => sum + listIn(series, "samples").length, 0);
  withinLimit("profiles-per-request", profiles);
  return all.map((series) => ({
    labels: listIn(series, "labels").map((label) => [
      textIn(label, "name"),
      textIn(label, "value"),
    ]),
    samples: listIn(series, "samples").map((sample) => ({
      profile: Buffer.from(textIn(sample, "rawProfile") || textIn(sample, "raw_profile"), "base64"),
      id: textIn(sample, "ID") || textIn(sample, "id"),
    })),
  }));
}

function listIn(value: unknown, name: string): unknown[] {
  const list = fieldIn(value, name) ?? [];
  return Array.isArray(list) ? list : malformed(`${name} is not a list`);
}

function textIn(value: unknown, name: string): string {
  const text = fieldIn(value, name) ?? "";
  return typeof text === "string" ? text : malformed(`${name} is not text`);
}

function fieldIn(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null
    ? (value as Record<string, unknown>)[name]
    : malformed("an object is missing");
}
