/** Profiles as other profilers send them, for the tests of the server. */
import { Location, Function as PprofFunction, Profile, StringTable } from "pprof-format";
import { Message } from "./messages.js";

/** A pprof profile of one stack. */
export function pprofOf(
  values: Record<string, number>,
  { timeMs = Date.now(), name = "handle", depth = 1 } = {},
): Buffer {
  const strings = new StringTable();
  const text = (value: string) => strings.dedup(value);
  const sampleType = Object.keys(values).map((type) => ({ type: text(type), unit: text("bytes") }));
  return Buffer.from(
    new Profile({
      sampleType,
      sample: [
        {
          locationId: Array.from({ length: depth }, () => 1),
          value: Object.values(values),
          label: [],
        },
      ],
      location: [new Location({ id: 1, line: [{ functionId: 1, line: 12 }] })],
      function: [new PprofFunction({ id: 1, name: text(name), filename: text("app.py") })],
      stringTable: strings,
      timeNanos: BigInt(timeMs) * 1_000_000n,
      durationNanos: 10_000_000_000n,
    }).encode(),
  );
}

/** A request of Pyroscope's push API with one profile. */
export function pushMessage(labels: Record<string, string>, pprof: Buffer, id: string): Buffer {
  return new Message()
    .message(1, (series) => {
      for (const [key, value] of Object.entries(labels)) {
        series.message(1, (pair) => pair.text(1, key).text(2, value));
      }
      series.message(2, (sample) => sample.bytes(1, pprof).text(2, id));
    })
    .done();
}
