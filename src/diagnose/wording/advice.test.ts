import { describe, expect, test } from "vitest";
import type { HolderJson, VerdictKind } from "../../model/documents/diagnosis_document.js";
import { adviceFor, adviceForBacklog } from "./advice.js";
import type { AdviceFacts } from "./advice_entry.js";
import { nameOf } from "./holder_name.js";

const putters = (name: string): HolderJson["putters"] => [
  { function: name, file: "/srv/app.py", line: 10, kind: "python" },
];

/** "module __main__ > q > .queue: collections.deque" */
function held(text: string, more: Partial<HolderJson> = {}): HolderJson {
  const [path = "", type = ""] = text.split(": ");
  return { path: path.split(" > "), type, retainedBytes: 1e6, entries: 700, ...more };
}

const ids = (facts: Partial<AdviceFacts>, kind: VerdictKind = "python-leak") =>
  adviceFor(kind, { holder: null, code: "", ...facts }).map(({ id }) => id);
const first = (facts: Partial<AdviceFacts>, kind: VerdictKind = "python-leak") =>
  adviceFor(kind, { holder: null, code: "", ...facts })[0]?.text ?? "";

describe("advice for a worker that grows", () => {
  test.each([
    ["handle /srv/app.py init_process /venv/site-packages/gunicorn/workers/base.py", "TM-A062"],
    [
      "handle /srv/app.py run /venv/uvicorn/server.py run /venv/site-packages/gunicorn/app/base.py",
      "TM-A062",
    ],
    ["work /srv/tasks.py trace_task /venv/site-packages/celery/app/trace.py", "TM-A063"],
    ["handle /srv/app.py run /venv/site-packages/uvicorn/server.py", "TM-A064"],
    ["work /srv/a.py worker /usr/lib/python3.11/multiprocessing/pool.py", "TM-A065"],
    ["work /srv/a.py _process_worker /usr/lib/python3.12/concurrent/futures/process.py", "TM-A065"],
    ["work /srv/a.py main /srv/uvicornish.py", "TM-A061"],
  ])("%s", (code, id) => {
    const kind = "child-growth";
    expect(ids({ code }, kind).filter((each) => each.startsWith("TM-A06"))).toEqual([id]);
    expect(ids({ code, holder: held("module app > history: list") }, kind)).toEqual([
      "TM-A001",
      id,
    ]);
    const failures = held("module app > failures: list");
    expect(ids({ code, holder: failures }, kind)).toEqual(["TM-A005", id]);
  });
});

test("an array or a buffer that is extended", () => {
  for (const [type, id] of [
    ["numpy.ndarray", "TM-A007"],
    ["pandas.core.frame.DataFrame", "TM-A041"],
    ["bytearray", "TM-A018"],
    ["_io.BytesIO", "TM-A039"],
  ]) {
    expect(ids({ holder: held(`module app > buffer: ${type}`) })[0]).toBe(id);
  }
});

describe("a queue is bounded or drained, and never told to drop its jobs", () => {
  test.each([
    ["module __main__ > q > .queue: collections.deque", "q.queue"],
    [
      "thread MainThread > frame run (runners.py:194) > local main > coroutine main (app.py:12) > local p > .inbox > ._queue: collections.deque",
      "p.inbox._queue",
    ],
    ["module __main__ > q > ._buffer: collections.deque", "q._buffer"],
    ["module app > jobs: _queue.SimpleQueue", "app.jobs"],
  ])("%s", (path, name) => {
    const holder = held(path);
    expect(ids({ holder })).toEqual(["TM-A006"]);
    expect(first({ holder })).toContain(`Bound the queue (${name})`);
    expect(adviceForBacklog({ holder, code: "" })[0]?.id).toBe("TM-A006");
  });

  test("a deque, or a list with the name of a queue, may be one", () => {
    for (const text of [
      "module app > recent: collections.deque",
      "module app > worker > .backlog: list",
    ]) {
      expect(ids({ holder: held(text) })).toEqual(["TM-A009"]);
    }
    expect(first({ holder: held("module app > pending: list") })).toMatch(
      /^If app\.pending is a queue of work, use queue\.Queue.* drops the oldest entries/,
    );
    expect(ids({ holder: held("module app > history: list") })).toEqual(["TM-A001"]);
  });

  test("an executor has no bound of its own", () => {
    const holder = held("module app > pool > ._work_queue: _queue.SimpleQueue");
    expect(ids({ holder })).toEqual(["TM-A011"]);
    expect(adviceForBacklog({ holder, code: "" })[0]?.id).toBe("TM-A011");
    const jobs = held("module app > pool > ._work_queue > field of _queue.SimpleQueue: list");
    expect(ids({ holder: jobs })).toEqual(["TM-A011"]);
    expect(adviceForBacklog({ holder: null, code: "" })[0]?.id).toBe("TM-A006");
  });
});

test("a registry of listeners loses entries; another holder is named with the line that fills it", () => {
  const subs = held('module __main__ > Bus > ._inst > .subs > dict["changed"]: list', {
    putters: putters("subscribe"),
  });
  expect(ids({ holder: subs })).toEqual(["TM-A037"]);
  expect(ids({ holder: held("module app > bus > .listeners: set") })).toEqual(["TM-A004"]);
  expect(ids({ holder: held("module app > bus > .listeners: dict") })).toEqual(["TM-A038"]);
  expect(first({ holder: subs })).toContain('Remove entries from Bus._inst.subs["changed"] when');
  const active = held("local hub > .active: set", { putters: putters("Hub.request") });
  expect(ids({ holder: active })).toEqual(["TM-A008"]);
  expect(first({ holder: active })).toBe(
    "Remove entries from hub.active when they are no longer needed; Hub.request (app.py:10) adds them.",
  );
  expect(ids({ holder: held("module logging.handlers > state: dict") })).toEqual(["TM-A002"]);
  expect(ids({})).toEqual(["TM-A019"]);
});

test("finalizers are detached, a buffer is written out, and a manager keeps its process", () => {
  const finalizers = held("module weakref > finalize > ._registry: dict");
  expect(ids({ holder: finalizers })).toEqual(["TM-A027"]);
  const buffer = held("module app > log > .buf > field of _io.BytesIO: bytes");
  expect(ids({ holder: buffer })).toEqual(["TM-A039"]);
  const process = "module multiprocessing.process > _current_process";
  const shared = held(`${process} > ._manager_server > .id_to_obj > dict["7f"] > tuple[...]: dict`);
  expect(ids({ holder: shared }, "child-growth")).toEqual(["TM-A002"]);
});

test("a mapping without a file is closed; a named block is also unlinked", () => {
  const advised = (code: string) => ids({ code }, "shm-growth");
  const made = "new_mmap_object mmap.cpython-312.so take /srv/app.py";
  expect(advised(made)).toEqual(["TM-A052"]);
  expect(advised(`${made} SharedMemory.__init__ multiprocessing/shared_memory.py`)).toEqual([
    "TM-A051",
  ]);
});

test("a cache without a bound is bounded where its function is defined", () => {
  const wrapper = "field of functools._lru_cache_wrapper";
  const holder = held(`module __main__ > curve > ${wrapper}: dict`);
  expect(ids({ holder })).toEqual(["TM-A003"]);
  expect(first({ holder })).toContain("Bound the cache of curve (lru_cache(maxsize=...))");
  expect(ids({ holder: held("module app > price: functools._lru_cache_wrapper") })).toEqual([
    "TM-A003",
  ]);
});

test("what a handler or a registry keeps elsewhere is not its list of callbacks", () => {
  const code = "handle /srv/app.py Logger.makeRecord /usr/lib/python3.12/logging/__init__.py";
  const path = "module __main__ > log > .handlers > list[...] > .records: list";
  const own = held(path, { putters: putters("ReportHandler.emit") });
  expect(ids({ holder: own, code })).toEqual(["TM-A001"]);
  expect(first({ holder: own, code })).toContain("Bound log.handlers[...].records:");
  expect(ids({ holder: held("module app > bus > .subs > each of 4 > list[...]: list") })).toEqual([
    "TM-A037",
  ]);
});

test("callbacks in a list are entries of a registry, whatever its name", () => {
  const holder = held("module __main__ > app > .at_exit: list");
  expect(ids({ holder, added: new Map([["function", 786]]) })).toEqual(["TM-A037"]);
  expect(first({ holder, added: new Map([["function", 786]]) })).not.toContain("weak");
  expect(first({ holder: held("module app > listeners: list") })).toContain("weakref.WeakSet");
  expect(ids({ holder, added: new Map([["function", 7]]) })).toEqual(["TM-A001"]);
  const rules = held("module __main__ > rules: dict");
  expect(ids({ holder: rules, added: new Map([["function", 786]]) })).toEqual(["TM-A002"]);
});

test.each([
  [
    "module __main__ > observers: list",
    { added: new Map([["weakref.ReferenceType", 900]]) },
    "TM-A029",
  ],
  ["sys.modules: dict", {}, "TM-A032"],
  ["module sys > modules: dict", {}, "TM-A032"],
  ["module app > modules: dict", {}, "TM-A002"],
  ["module __main__ > s > .heap: list", {}, "TM-A033"],
  ["module __main__ > p: _pickle.Pickler", { isOfOneObject: true }, "TM-A034"],
  ["module __main__ > audit > field of itertools._tee: itertools._tee_dataobject", {}, "TM-A035"],
  ["module __main__ > r > .text: str", {}, "TM-A036"],
  ["module __main__ > up > .buffer: _io.BytesIO", {}, "TM-A039"],
  ["module __main__ > up > .buffer: bytearray", {}, "TM-A018"],
] as const)("%s: advice that its type can follow", (path, facts, id) => {
  expect(ids({ holder: held(path), ...facts })).toEqual([id]);
});

test("a set of tasks that never end is no registry of weak references", () => {
  const facts = {
    holder: held("module __main__ > subscribers: set"),
    made: "create_task /usr/lib/python3.12/asyncio/tasks.py",
    added: new Map([["_asyncio.Task", 1810]]),
  };
  expect(ids(facts)).toEqual(["TM-A016"]);
});

test("threads that have ended are dropped", () => {
  const holder = held("module __main__ > pool > .workers: list");
  const ended = new Map([
    ["threading.Thread", 494],
    ["function", 494],
  ]);
  expect(ids({ holder, added: ended })).toEqual(["TM-A024"]);
  expect(first({ holder, added: ended })).toMatch(/^Drop each thread from pool\.workers when/);
  expect(ids({ holder, added: new Map([["threading.Thread", 3]]) })).toEqual(["TM-A001"]);
});

test.each([
  "first /srv/app.py (no symbol) /usr/lib/x86_64-linux-gnu/libsqlite3.so.0",
  "load /srv/app.py (no symbol) /venv/psycopg_binary.libs/libpq-9b38f5e3.so.5",
  "load /srv/app.py (no symbol) /venv/_duckdb.cpython-312-x86_64-linux-gnu.so",
])("open cursors of a database are closed, not bounded: %s", (code) => {
  const holder = held("module __main__ > session > .cursors: list");
  expect(ids({ holder, code })).toEqual(["TM-A023"]);
  expect(first({ holder, code })).toContain("in session.cursors");
  expect(ids({ holder, code: "first /srv/app.py" })).toEqual(["TM-A001"]);
});

test("what a library keeps for one object is deleted, or the object is replaced", () => {
  const holder = held("module __main__ > db: sqlite3.Connection", { entries: 0 });
  expect(ids({ holder, isOfOneObject: true })).toEqual(["TM-A026"]);
  expect(first({ holder, isOfOneObject: true })).toContain("keeps for db when");
  expect(ids({ holder })).toEqual(["TM-A008"]);
});

test("stored exceptions, by their tracebacks or by the holder's name", () => {
  const holder = held("module __main__ > failures: list");
  expect(ids({ holder })).toEqual(["TM-A005", "TM-A001"]);
  expect(first({ holder })).toMatch(
    /^If failures holds exceptions, store their text.*__traceback__/,
  );
  const rows = held("module __main__ > rows: list");
  expect(first({ holder: rows, holdsTracebacks: true })).toMatch(/^Store the text of the error/);
});

test("logging: records that are not flushed, and a logger for each request", () => {
  const code = "request /srv/app.py Logger.makeRecord /usr/lib/python3.12/logging/__init__.py";
  const buffer = held("module __main__ > h > .buffer: list");
  expect(ids({ holder: buffer, code })).toEqual(["TM-A014"]);
  expect(ids({ holder: buffer })).toEqual(["TM-A001"]);
  const loggers = held("module logging > Logger > .manager > .loggerDict: dict");
  expect(ids({ holder: loggers, code })).toEqual(["TM-A015"]);
});

test("asyncio tasks that never finish", () => {
  const holder = held("local hub > .watchers: set");
  const made = "BaseEventLoop.create_task /usr/lib/python3.12/asyncio/base_events.py";
  expect(ids({ holder, made })[0]).toBe("TM-A016");
  // Every stack of an asyncio program contains its event loop.
  const code = "request /srv/app.py Handle._run /usr/lib/python3.12/asyncio/events.py";
  expect(ids({ holder, code, made: "request /srv/app.py" })).toEqual(["TM-A008"]);
});

test("timers of an event loop are cancelled", () => {
  const path = 'module asyncio.events > policy > dict["_loop"] > ._scheduled';
  expect(ids({ holder: held(`${path}: list`) })).toEqual(["TM-A025"]);
});

test("a class for each call", () => {
  const code = "namedtuple /usr/lib/python3.12/collections/__init__.py parse /srv/app.py";
  expect(ids({ code })).toEqual(["TM-A017"]);
  expect(ids({ code }, "cycle-garbage")).toEqual(["TM-A017", "TM-A010"]);
  expect(ids({ added: new Map([["type", 389]]) })).toEqual(["TM-A017"]);
  expect(ids({ added: new Map([["type", 3]]) })).toEqual(["TM-A019"]);
});

test("slices of arrays keep the arrays", () => {
  const code = "default_malloc /venv/numpy/_core/_multiarray_umath.so sample /srv/app.py";
  const holder = held("module __main__ > heads: dict");
  expect(ids({ holder, code })).toEqual(["TM-A002", "TM-A013"]);
  expect(ids({ holder })).toEqual(["TM-A002"]);
});

test("handles: each kind is closed or ended in its own manner", () => {
  expect(ids({ handles: "threads" }, "handle-leak")).toEqual(["TM-A071"]);
  expect(ids({ handles: "open sockets" }, "handle-leak")).toEqual(["TM-A072"]);
  expect(ids({ handles: "open files" }, "handle-leak")).toEqual(["TM-A070"]);
  const code = "Popen._get_handles /usr/lib/python3.13/subprocess.py";
  expect(ids({ handles: "open files", code }, "handle-leak")).toEqual(["TM-A073"]);
});

test("kept graphs: loss.item() first, and create_graph only where a gradient holds them", () => {
  const code = "relu /venv/torch/nn/functional.py backward /venv/torch/_tensor.py";
  const history = held("module __main__ > history: list");
  expect(ids({ holder: history, code }, "graph-retention")).toEqual(["TM-A020"]);
  expect(first({ holder: history, code }, "graph-retention")).toMatch(
    /^Keep numbers in history, not tensors: loss\.item\(\)/,
  );
  expect(ids({ code }, "graph-retention")).toEqual(["TM-A020", "TM-A021"]);
  const gradient = held("module __main__ > weight > .grad: torch.Tensor");
  expect(ids({ holder: gradient, code }, "graph-retention")).toEqual(["TM-A021"]);
});

test.each([
  ["module app > history", "app.history"],
  ["module __main__ > __dict__", "globals()"],
  ["module __main__ > Conn > .pool", "Conn.pool"],
  ['module __main__ > a > .b > collections.defaultdict["k"]', 'a.b["k"]'],
  ["thread MainThread > frame run (a.py:1) > local hub > .watchers", "hub.watchers"],
  ["module app > x > … 9 steps … > .y", null],
  ["thread MainThread > frame run (a.py:1)", null],
])("the name of %s", (path, name) => {
  expect(nameOf({ path: path.split(" > ") })).toBe(name);
});

test("entries that hold many objects each may be what grows", () => {
  const holder = held("module app > cache: dict", { entries: 40 });
  expect(first({ holder, objectsOfEntry: 20 })).toBe(
    "Bound app.cache: evict the oldest entry, or let entries expire.",
  );
  expect(first({ holder, objectsOfEntry: 4700.4 })).toMatch(
    / Its 40 entries held about 4,700 objects each when they were counted: if the entries are what grows, bound those\.$/,
  );
  expect(ids({ holder, containersGrow: true })).toEqual(["TM-A028"]);
  const queue = held("module app > jobs > .queue: collections.deque");
  expect(ids({ holder: queue, containersGrow: true })).toEqual(["TM-A006"]);
});
