/**
 * Storage on change: `npm run bench -- server_unchanged [--minutes 15] [--copies 4]`
 *
 * Profiles that differ from the last stored one by less than their standard error are stored without samples. Real programs
 * of three kinds are recorded, and their recordings stored; then each profile without samples gets those that it refers to, which
 * is what storing all would take. Both databases are compacted before their sizes are read.
 *
 * The recorder takes a profile whenever the run is 12 % longer, so from 83 minutes on they are more than ten minutes apart,
 * and all are stored. The figures of a month add those to what was measured, with the mean size of a stored profile.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { DuckDBInstance } from "@duckdb/node-api";
import { streamName } from "../dist/recording/sender/stream_name.js";
import { StreamReader } from "../dist/recording/stream_reader.js";
import { openStore } from "../dist/store/index.js";
import { findInterpreters } from "../scripts/environment/interpreters.mjs";
import { describeMachine } from "./machine.mjs";
import { markdownTable, writeResults } from "./results.mjs";

const { values: options } = parseArgs({
  options: {
    minutes: { type: "string", default: "15" },
    copies: { type: "string", default: "4" },
  },
});
const minutes = Number(options.minutes);
const copies = Number(options.copies);
const interpreter = (await findInterpreters()).at(-1);
if (interpreter === undefined) {
  throw new Error("no Python interpreter was found");
}
const python = interpreter.path;
const tidemark = fileURLToPath(new URL("../bin/tidemark", import.meta.url));
const MONTH_MINUTES = 30 * 1440;
/** From one profile of the recorder to the next. */
const LONGER = 1.12;
const REPEATS = 25;
const LIMITS = { frameBytes: 64 << 20, callBytes: 1 << 30 };

const START = `import collections, email.parser, json, random, sqlite3, sys, time
end = time.monotonic() + float(sys.argv[1])
table = [{"id": i, "name": f"customer {i}", "tags": [i, i + 1]} for i in range(40_000)]
def handle(i):
    order = json.loads(json.dumps(table[i % len(table)]))
    message = email.parser.Parser().parsestr(f"To: {order['name']}\\n\\n" + "text " * 50)
    return len(message.as_string())
`;
const PROGRAMS = {
  "waits, with its data loaded": `${START}
while time.monotonic() < end:
    time.sleep(0.1)
`,
  "handles requests, with a cache that is full": `${START}
cache = collections.OrderedDict()
i = 0
while time.monotonic() < end:
    for _ in range(20):
        i += 1
        handle(i)
        cache[random.randrange(5000)] = bytes(random.randrange(2_000))
        if len(cache) > 3000:
            cache.popitem(last=False)
    time.sleep(0.05)
`,
  "leaks 100 KiB a second": `${START}
kept = []
while time.monotonic() < end:
    kept.append(bytearray(10 << 10))
    handle(len(kept))
    time.sleep(0.1)
`,
};

const folder = mkdtempSync(join(tmpdir(), "tidemark-bench-unchanged-"));
try {
  const recorded = await Promise.all(
    Object.entries(PROGRAMS).flatMap(([kind, program]) =>
      Array.from({ length: copies }, (_, copy) => recordingOf(kind, program, copy)),
    ),
  );
  const rows = [];
  for (const kind of Object.keys(PROGRAMS)) {
    const paths = recorded.filter((each) => each.kind === kind).map(({ path }) => path);
    const { profiles, stored, onBytes, offBytes } = await sizes(kind, paths);
    const [profilesOfOne, bytesOfOne] = [profiles / copies, (bytes) => bytes / copies];
    const later = Math.log(MONTH_MINUTES / minutes) / Math.log(LONGER);
    const month = (/** @type {number} */ bytes) =>
      `${((bytesOfOne(bytes) + (later * offBytes) / profiles) / 1e6).toFixed(2)} MB`;
    rows.push([
      kind,
      profilesOfOne.toFixed(0),
      `${((100 * stored) / profiles).toFixed(0)} %`,
      `${(bytesOfOne(onBytes) / 1e3).toFixed(0)} kB`,
      `${(bytesOfOne(offBytes) / 1e3).toFixed(0)} kB`,
      ...[month(onBytes), month(offBytes)],
    ]);
  }
  const table = markdownTable(
    [
      "program",
      `profiles in ${minutes} minutes`,
      "stored with samples",
      "a process, on change",
      "a process, all stored",
      "a process and month, on change",
      "a process and month, all stored",
    ],
    rows,
  );
  console.log(table);
  const head = `\`npm run bench -- server_unchanged\` on ${describeMachine(python)}. Each program was recorded for ${minutes} minutes in ${copies === 1 ? "one process" : `${copies} processes`}; sizes are those of profiles and samples in a compacted database. From 83 minutes on profiles are more than ten minutes apart, so all are stored.`;
  writeResults("server_unchanged", ["## Storage on change", head, table].join("\n\n"));
} finally {
  rmSync(folder, { recursive: true, force: true });
}

/** @param {string} kind @param {string} program @param {number} copy */
async function recordingOf(kind, program, copy) {
  const path = join(folder, `${Object.keys(PROGRAMS).indexOf(kind)}-${copy}.tidemark`);
  const words = ["run", "-o", path, "--quiet", "--", python, "-c", program, `${minutes * 60}`];
  const child = spawn(tidemark, words, { stdio: ["ignore", "inherit", "inherit"] });
  const [code] = await once(child, "exit");
  if (code !== 0) {
    throw new Error(`a program ended with code ${code}`);
  }
  return { kind, path };
}

/** Of all processes of a kind. @param {string} kind @param {readonly string[]} paths */
async function sizes(kind, paths) {
  const data = join(folder, `data-${Object.keys(PROGRAMS).indexOf(kind)}`);
  const { store } = await openStore(`duckdb:${data}`);
  const parts = paths.map((path) => {
    const recording = readFileSync(path);
    const items = new StreamReader(path, LIMITS).take(recording);
    return { stream: streamName(recording), items, endOffset: recording.length };
  });
  await store.write(parts, 0);
  await store.close();
  const instance = await DuckDBInstance.create(":memory:");
  const database = await instance.connect();
  let [profiles, stored, onBytes, offBytes] = [0, 0, 0, 0];
  for (const name of readdirSync(join(data, "days")).filter((each) => each.endsWith(".duckdb"))) {
    const place = join(data, "days", name);
    await database.run(`ATTACH '${place}' AS day (READ_ONLY)`);
    const counted = await database.runAndReadAll(
      "SELECT count(*), count(*) FILTER (profile_id = samples_id) FROM day.profiles",
    );
    const [counts = []] = counted.getRows();
    profiles += Number(counts[0]);
    stored += Number(counts[1]);
    onBytes += await compacted(database, `${place}.on`, "SELECT * FROM day.samples");
    offBytes += await compacted(
      database,
      `${place}.off`,
      `SELECT s.* REPLACE (p.profile_id AS profile_id, p.ts_ms AS ts_ms)
        FROM day.profiles p JOIN day.samples s ON s.profile_id = p.samples_id`,
    );
    await database.run("DETACH day");
  }
  instance.closeSync();
  return { profiles, stored, onBytes, offBytes };
}

/**
 * @param {import("@duckdb/node-api").DuckDBConnection} database @param {string} path
 * @param {string} samples @returns {Promise<number>} its size, of one copy
 */
async function compacted(database, path, samples) {
  await database.run(`ATTACH '${path}' AS copy`);
  for (const [table, rows, ids] of [
    ["profiles", "SELECT * FROM day.profiles", ["series_id", "profile_id", "samples_id"]],
    ["samples", samples, ["series_id", "profile_id"]],
  ]) {
    const other = /** @type {string[]} */ (ids).map((id) => `hash(${id}, repeat) AS ${id}`);
    await database.run(
      `CREATE TABLE copy.${table} AS SELECT * EXCLUDE (repeat) REPLACE (${other.join(", ")})
        FROM (${rows}), (SELECT unnest(range(${REPEATS})) AS repeat) ORDER BY series_id, ts_ms`,
    );
  }
  await database.run("CHECKPOINT copy");
  await database.run("DETACH copy");
  return statSync(path).size / REPEATS;
}
