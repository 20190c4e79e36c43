/**
 * Tests that benefit from many repetitions, with their counts. `npm test` runs the sample of each;
 * `npm run test:long` sets TIDEMARK_LONG=1, runs the full count, and writes docs/test-long.md. A test
 * reads its count by `inject("counts")` of vitest.
 *
 * @typedef {"tensorflow" | "chdb" | "cluster" | "kubernetes" | "debian"} LongNeed what set-up leaves out of `npm test`
 *
 * @typedef {object} LongTest
 * @property {string} what is repeated: the row's name in docs/test-long.md
 * @property {string} file part of the test file's path
 * @property {number} sample repetitions under `npm test`
 * @property {number} full repetitions under `npm run test:long`
 * @property {LongNeed[]} [needs]
 *
 * @typedef {keyof typeof longTests} LongTestName
 */

export const longTests = {
  soakCycles: {
    what: "attach and detach cycles of a service under load",
    file: "test/attach/soak.test",
    sample: 20,
    full: 1000,
  },
  attachRounds: {
    what: "attaches to one program, on every interpreter",
    file: "test/attach/matrix.test",
    sample: 2,
    full: 25,
  },
  cpythonModules: {
    what: "of CPython's own test modules, plain and recorded; all of them on each interpreter that comes with its tests",
    file: "test/real/cpython_tests.test",
    sample: 3,
    full: 15,
  },
  installPlaces: {
    what: "machines, interpreters and layouts on which the wheel is installed, used and uninstalled",
    file: "test/packages/install.test",
    sample: 1,
    full: 17,
    needs: ["debian"],
  },
  planCases: {
    what: "models and options whose savings and fits are planned again",
    file: "test/plan/consistency.test",
    sample: 11,
    full: 18,
  },
  innocentDeployFleets: {
    what: "fleets of four services whose last deploy changes memory and is no regression, asked at up to 14 moments",
    file: "test/fleetbench_innocent.test",
    sample: 1,
    full: 50,
  },
  shapeFleets: {
    what: "fleets of ten innocent and two leaking services of further shapes, asked at up to 14 moments",
    file: "test/fleetbench_shapes.test",
    sample: 1,
    full: 15,
  },
  replacedHolders: {
    what: "versions of Python on which holders are found while they are constantly replaced",
    file: "test/heap/running.test",
    sample: 2,
    full: 6,
  },
  memoryModes: {
    what: "versions of Python in each of their modes of allocating and checking memory",
    file: "test/bad/modes.test",
    sample: 3,
    full: 6,
  },
  memcheckVersions: {
    what: "versions of Python under Valgrind, with every kind of fault",
    file: "test/memcheck_runs.test",
    sample: 2,
    full: 6,
  },
  packageFolders: {
    what: "folders in which the packages are built, to the same bytes; and Debian 11 and 13 that compile the agent",
    file: "test/packages/wheel.test",
    sample: 0,
    full: 2,
    needs: ["debian"],
  },
  tensorflowPrograms: {
    what: "programs of TensorFlow itself whose allocators gpu PID and import compare (none if it is not installed)",
    file: "test/gpu/tensorflow.test",
    sample: 2,
    full: 2,
    needs: ["tensorflow"],
  },
  killMoments: {
    what: "moments of a run at which the recorder is killed",
    file: "test/record/killed_anytime.test",
    sample: 9,
    full: 300,
  },
  serverKills: {
    what: "moments of ingest at which the server is killed",
    file: "test/server/killed.test",
    sample: 5,
    full: 200,
  },
  storeKinds: {
    what: "databases on which the suites for all stores run: DuckDB, ClickHouse, its newest engine, and two shards with two replicas (those that are installed)",
    file: "src/store",
    sample: 2,
    full: 4,
    needs: ["chdb", "cluster"],
  },
  apiServers: {
    what: "versions of Kubernetes in whose API server the chart is installed, upgraded and removed",
    file: "test/kubernetes/api_server.test",
    sample: 0,
    full: 1,
    needs: ["kubernetes"],
  },
  busyHostSeconds: {
    what: "seconds in which 20 processes start and 200 are forked each second beside a collector",
    file: "test/watch/busy_host.test",
    sample: 30,
    full: 120,
  },
  killRounds: {
    what: "rounds of kills of program, recorder and guard",
    file: "test/bad/kill.test",
    sample: 1,
    full: 40,
  },
  orphanBytes: {
    what: "bytes of an orphaned segment that are cut or changed",
    file: "/orphan_damage.",
    sample: 600,
    full: 10_000,
  },
  recordingGarbage: {
    what: "lengths of garbage behind the frames of a recording",
    file: "/recording_damage.",
    sample: 300,
    full: 3000,
  },
  recordingBytes: {
    what: "bytes of a real recording that are cut or changed",
    file: "test/bad/damage.test",
    sample: 500,
    full: 10_000,
  },
  hostileSegments: {
    what: "segments of random bytes",
    file: "/segment/hostile.",
    sample: 200,
    full: 4000,
  },
  damagedSnapshots: {
    what: "GPU snapshots with changed bytes, and of random opcodes",
    file: "/read_snapshot.",
    sample: 1500,
    full: 30_000,
  },
  oddSnapshots: {
    what: "GPU snapshots with odd values",
    file: "/odd_snapshots.",
    sample: 500,
    full: 10_000,
  },
};

export const isLong = process.env.TIDEMARK_LONG === "1";

/** The repetitions that this run makes. */
export const counts = /** @type {Record<LongTestName, number>} */ (
  Object.fromEntries(
    Object.entries(longTests).map(([name, { sample, full }]) => [name, isLong ? full : sample]),
  )
);
