/**
 * The test environment for tests of whole programs: interpreters, PyPI packages, tools.
 * `node scripts/environment.mjs` creates what it can and prints it; tests call
 * `readEnvironment()`.
 *
 * Everything large is created once, outside the clone, in ${XDG_CACHE_HOME:-~/.cache}/tidemark, under a
 * name with the hash of its inputs. It is built next to its final path and then renamed, so an existing
 * folder is always complete. What is unavailable is listed in `skipped`, and the test report counts it.
 */
import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { findOnPath, runAsScript } from "./command.mjs";
import { makeAllocators } from "./environment/allocators.mjs";
import { makeChroot } from "./environment/chroot.mjs";
import { makeBuildRoot, makeCleanRoot } from "./environment/clean_roots.mjs";
import { makeClickhouse, makeZookeeper } from "./environment/clickhouse.mjs";
import { makeFreeThreaded } from "./environment/free_threaded.mjs";
import {
  findInterpreters,
  interpretersIn,
  interpretersInChroot,
} from "./environment/interpreters.mjs";
import { makeApiServer, makeHelm } from "./environment/kubernetes.mjs";
import {
  makeChdb,
  makeKubernetesSchemas,
  makePackages,
  makePackagingTools,
  makeSenders,
  makeTensorflow,
  makeTorch,
} from "./environment/packages.mjs";
import { installSystemTools } from "./environment/system_tools.mjs";
import { makeWheelhouse } from "./environment/wheelhouse.mjs";
import { root, setUp } from "./setup.mjs";

/**
 * @typedef {object} Interpreter one CPython
 * @property {string} version "3.11.7"; "3.15.0rc1" for a pre-release
 * @property {string} path of the executable, inside `chroot` where that is set
 * @property {boolean} sharedLibrary linked to libpython3.N.so (else static)
 * @property {boolean} freeThreaded built without a GIL
 * @property {string} [chroot] absolute path of its root folder, if it is in a chroot: start it with chroot(8)
 *
 * @typedef {object} Environment
 * @property {Interpreter[]} interpreters oldest first; one for each version and place
 * @property {string | null} packagesPython executable of a virtual environment that holds
 *   test/requirements.txt (NumPy, pandas, FastAPI, uvicorn, gevent, pytest, ...)
 * @property {string | null} torchPython the same for test/requirements-torch.txt
 * @property {string | null} tensorflowPython the same for test/requirements-tensorflow.txt
 * @property {string | null} chdbPython the same for test/requirements-chdb.txt (ClickHouse's newest engine)
 * @property {string | null} sendersPython the same for test/requirements-senders.txt (profilers that
 *   send to a server)
 * @property {string | null} schemasPython the same for test/requirements-kubernetes.txt (the API's schemas)
 * @property {string | null} helm path of the program
 * @property {string | null} kubernetes folder of the programs kube-apiserver and etcd
 * @property {string | null} chroot root folder of Debian forky with Python 3.13 and newer
 * @property {string | null} allocators folder of the libraries of jemalloc, mimalloc and tcmalloc
 * @property {string | null} clickhouse root folder of Debian's ClickHouse server and its libraries
 * @property {string | null} zookeeper root folder of Debian's ZooKeeper and its libraries
 * @property {string | null} wheelhouse folder of wheels: test/requirements-wheelhouse.txt
 * @property {string | null} packagingPython executable of a virtual environment that holds
 *   test/requirements-packaging.txt (auditwheel, twine, ...)
 * @property {Record<string, string>} cleanRoots root folders of Debian by suite: Python, no compiler, no Node
 * @property {Record<string, string>} buildRoots the same by suite: a C compiler, no Python
 * @property {Record<string, string | null>} tools path of a program, by name
 * @property {{what: string, why: string}[]} skipped what is unavailable
 *
 * @typedef {import("./environment/clean_roots.mjs").CleanSuite} Suite
 */

const file = join(root, "node_modules/.cache/tidemark/environment.json");
const toolNames = [
  "valgrind",
  "heaptrack",
  "cc",
  "c++",
  "clang",
  "setpriv",
  "unshare",
  "nsenter",
  "go",
  "prometheus",
  "promtool",
  "prometheus-alertmanager",
];

/**
 * The environment that the last set-up of this clone found.
 * @returns {Environment}
 * @throws {Error} no set-up has run
 */
export function readEnvironment() {
  try {
    return JSON.parse(readFileSync(file, "utf8"));
  } catch {
    throw new Error("no test environment yet: run `npm test`, or `node scripts/environment.mjs`");
  }
}

/** Debian 12 is in every run of the tests, the others in `npm run test:long`. */
const /** @type {Suite[]} */ suites = ["bookworm"];
const /** @type {Suite[]} */ longSuites = ["bookworm", "bullseye", "trixie"];
const /** @type {Suite[]} */ longBuildSuites = ["bullseye", "trixie"];

/** @typedef {import("../test/long.mjs").LongNeed} LongNeed */

/**
 * Creates what is missing and writes the file that readEnvironment() reads.
 * @param {{needs?: ReadonlySet<LongNeed>}} [options] what only tests of `npm run test:long` need
 * @returns {Promise<Environment>}
 */
export async function makeEnvironment({ needs = new Set() } = {}) {
  await setUp();
  /** @type {Environment["skipped"]} */
  const skipped = [];
  /**
   * @param {string} what
   * @param {() => Promise<string>} make
   */
  const orSkip = async (what, make) => {
    try {
      return await make();
    } catch (error) {
      if (!(error instanceof Error)) {
        throw error;
      }
      skipped.push({ what, why: error.message });
      return null;
    }
  };
  skipped.push(...(await installSystemTools()));
  const local = await findInterpreters();
  const chroot = await orSkip("Python of Debian forky", makeChroot);
  const freeThreaded = await orSkip("CPython without a GIL", makeFreeThreaded);
  const packagesPython = await orSkip("PyPI packages", () => makePackages(local));
  const torchPython = await orSkip("torch", () => makeTorch(local));
  const tensorflowPython = await orSkip("TensorFlow", () =>
    makeTensorflow(local, needs.has("tensorflow")),
  );
  const chdbPython = await orSkip("chdb", () => makeChdb(local, needs.has("chdb")));
  const sendersPython = await orSkip("profilers that send", () => makeSenders(local));
  const schemasPython = await orSkip("schemas of Kubernetes", () => makeKubernetesSchemas(local));
  const helm = await orSkip("Helm", makeHelm);
  const kubernetes = await orSkip("an API server of Kubernetes", () =>
    makeApiServer(needs.has("kubernetes")),
  );
  const wheelhouse = await orSkip("wheels for offline installs", () => makeWheelhouse(local));
  const allocators = await orSkip("jemalloc, mimalloc, tcmalloc", makeAllocators);
  const clickhouse = await orSkip("ClickHouse", makeClickhouse);
  const zookeeper = await orSkip("ZooKeeper", () => makeZookeeper(needs.has("cluster")));
  const packagingPython = await orSkip("packaging tools", () => makePackagingTools(local));
  /** @type {Record<"cleanRoots" | "buildRoots", Record<string, string>>} */
  const roots = { cleanRoots: {}, buildRoots: {} };
  const isEveryDebian = needs.has("debian");
  for (const suite of isEveryDebian ? longSuites : suites) {
    const made = await orSkip(`Debian ${suite}`, () => makeCleanRoot(suite));
    Object.assign(roots.cleanRoots, made === null ? {} : { [suite]: made });
  }
  for (const suite of isEveryDebian ? longBuildSuites : []) {
    const made = await orSkip(`a compiler in Debian ${suite}`, () => makeBuildRoot(suite));
    Object.assign(roots.buildRoots, made === null ? {} : { [suite]: made });
  }
  const environment = {
    interpreters: [
      ...local,
      ...(freeThreaded ? await interpretersIn([freeThreaded]) : []),
      ...(chroot ? await interpretersInChroot(chroot) : []),
    ],
    packagesPython,
    torchPython,
    tensorflowPython,
    chdbPython,
    sendersPython,
    schemasPython,
    helm,
    kubernetes,
    chroot,
    wheelhouse,
    allocators,
    clickhouse,
    zookeeper,
    packagingPython,
    ...roots,
    tools: Object.fromEntries(toolNames.map((name) => [name, findOnPath(name) ?? null])),
    skipped,
  };
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(`${file}.${process.pid}`, `${JSON.stringify(environment, null, 2)}\n`);
  renameSync(`${file}.${process.pid}`, file);
  return environment;
}

await runAsScript(import.meta, async () => {
  process.stdout.write(`${JSON.stringify(await makeEnvironment(), null, 2)}\n`);
});
