import { code } from "./growing.js";
import { callsMatching, madeAgain } from "./made_again.js";
import type { Rule } from "./rule.js";

export const poolPerRequest: Rule = {
  id: "TM-L027",
  name: "pool-not-shut-down",
  severity: "error",
  finds:
    "A pool of threads, processes or connections, a scheduler or an event loop created in a function that runs repeatedly, and never shut down.",
  why: "Its threads or processes wait for work that never comes; each thread has a stack and may have an arena of the allocator.",
  speed: "Up to `max_workers` threads or processes for each call.",
  before: `
from concurrent.futures import ThreadPoolExecutor

def handle(request):
    pool = ThreadPoolExecutor(max_workers=8)
    return [f.result() for f in [pool.submit(load, p) for p in request.paths]]
`,
  after: `
from concurrent.futures import ThreadPoolExecutor

def handle(request):
    with ThreadPoolExecutor(max_workers=8) as pool:
        return [f.result() for f in [pool.submit(load, p) for p in request.paths]]
`,
  ignore: "The function runs once, and the pool should live as long as the program.",
  proof: "`tidemark ps` shows children and threads; `tidemark stacks PID` shows them waiting.",
  *check(file) {
    for (const call of callsMatching(POOLS, file)) {
      if (file.resources.fateOf(call.node) !== "open") {
        continue;
      }
      const repeat = madeAgain(call, file);
      const name = call.scope.functionAround?.name;
      if (
        repeat !== null ||
        (name !== undefined && !ONCE.test(name) && !/Thread$|Timer$|loop$/.test(call.full))
      ) {
        yield {
          node: call.node,
          severity: repeat === null ? "warning" : "error",
          message: `${code(call.callee.text)} is created ${repeat?.text ?? `in each call of ${code(name ?? "")}`}, and never shut down`,
        };
      }
    }
  },
};

const ONCE =
  /^(?:_?main|_?run|setup\w*|__init__|start\w*|create_\w+|get_\w+|make_\w+|build_\w+|test\w*|lifespan|startup)$/;

const POOLS =
  /^(?:concurrent\.futures\.(?:thread\.|process\.)?(?:ThreadPoolExecutor|ProcessPoolExecutor)|(?:torch\.)?multiprocessing\.(?:pool\.)?(?:Pool|ThreadPool)|multiprocessing\.Manager|multiprocessing\.get_context\(\)\.Pool|asyncio\.new_event_loop|(?:joblib|loky)\.\w*Executor|gevent\.pool\.Pool|gevent\.threadpool\.ThreadPool|apscheduler\.schedulers\.\w+\.\w+Scheduler|asyncpg\.create_pool|aiomysql\.create_pool|psycopg2\.pool\.\w+|psycopg_pool\.\w+|dask\.distributed\.(?:Client|LocalCluster)|distributed\.(?:Client|LocalCluster)|multiprocessing\.shared_memory\.SharedMemory)$/;
