/** Advice about what holds Python objects: what fits a queue or a registry of listeners does not fit a history. */
import { formatExactCount } from "../../model/base/numbers.js";
import type { VerdictKind } from "../../model/documents/diagnosis_document.js";
import type { Advice } from "./advice_entry.js";
import {
  ARRAYS,
  added,
  BUFFER,
  COLLECTION,
  DATABASE,
  DEQUE,
  DICT,
  ERRORS,
  FILE_IN_MEMORY,
  HEAP_NAME,
  holdsCallbacks,
  holdsTheOnly,
  ifEntriesGrow,
  isLruCache,
  isOfType,
  isQueue,
  isRegistry,
  LIST,
  lastStep,
  MANY_CALLBACKS,
  MANY_CLASSES,
  MANY_THREADS,
  NEW_CLASS,
  NEW_TASK,
  ofExecutor,
  QUEUE_NAME,
} from "./holder_facts.js";
import { frameText } from "./words.js";

const OF_OBJECTS: readonly VerdictKind[] = ["python-leak", "child-growth"];

function registryAdvice(
  id: string,
  example: Pick<Advice, "when" | "before" | "after">,
  fitsType: (type: string) => boolean,
): Advice[] {
  return [
    {
      id,
      ...example,
      text: "Remove what registers itself when it is no longer needed, or let the registry hold weak references (weakref.WeakSet, weakref.WeakMethod).",
      named: (name, facts) =>
        `Remove entries from ${name} when what they belong to ends${holdsTheOnly(facts) ? "" : ", or let it hold weak references (weakref.WeakSet, weakref.WeakMethod)"}.`,
      kinds: OF_OBJECTS,
      fits: (facts) =>
        (isRegistry(facts) || holdsCallbacks(facts)) &&
        fitsType(facts.holder?.type ?? "") &&
        !NEW_TASK.test(facts.made ?? ""),
      insteadOf: ["TM-A001", "TM-A002"],
      stands: "registry",
    },
  ];
}

export const HOLDER_ADVICE: readonly Advice[] = [
  {
    id: "TM-A022",
    text: "Clear the results of earlier cells, which IPython keeps in Out, _oh and _5: %reset -f out. End a cell with a semicolon to keep no result, or set c.InteractiveShell.cache_size = 0.",
    when: "IPython or Jupyter keeps the result of each cell that is run.",
    kinds: ["python-leak", "graph-retention"],
    holder: /^dict of IPython results$/,
    insteadOf: ["TM-A002", "TM-A013"],
    before: "load(path)",
    after: "load(path);   # or: %reset -f out",
  },
  {
    id: "TM-A005",
    text: "Store the text of the error (traceback.format_exc()), not the exception. An exception refers to its traceback, which refers to the locals of every frame.",
    named: (name, { holdsTracebacks }) =>
      holdsTracebacks
        ? null
        : `If ${name} holds exceptions, store their text (traceback.format_exc()) instead: an exception refers to its traceback (__traceback__), which refers to the locals of every frame.`,
    when: "Exceptions or sys.exc_info() are stored, and tracebacks and frames accumulate with them.",
    kinds: OF_OBJECTS,
    fits: (facts) =>
      facts.holdsTracebacks === true || (facts.holder !== null && ERRORS.test(lastStep(facts))),
    stands: "errors",
    before: "errors.append(sys.exc_info())",
    after: "errors.append(traceback.format_exc())",
  },
  {
    id: "TM-A011",
    text: "Submit no more work to the executor than it can finish: take a semaphore before submit(), and release it when the future is done.",
    when: "Jobs wait in a ThreadPoolExecutor or ProcessPoolExecutor, whose queue has no bound.",
    kinds: OF_OBJECTS,
    fits: ofExecutor,
    insteadOf: ["TM-A001", "TM-A002", "TM-A006", "TM-A009"],
    before: "executor.submit(work, job)",
    after:
      "slots.acquire()   # slots = threading.BoundedSemaphore(1000)\nexecutor.submit(work, job).add_done_callback(lambda _: slots.release())",
  },
  {
    id: "TM-A006",
    text: "Bound the queue (maxsize=...), so that the producer waits, or add consumers until they keep up.",
    named: (name) =>
      `Bound the queue (${name}) with maxsize=..., so that the producer waits, or add consumers until they keep up.`,
    when: "A backlog grows: items enter a queue (queue, asyncio, multiprocessing) faster than they are consumed.",
    kinds: OF_OBJECTS,
    fits: isQueue,
    insteadOf: ["TM-A001", "TM-A009"],
    stands: "jobs",
    before: "jobs = Queue()",
    after: "jobs = Queue(maxsize=1000)   # put() waits while it is full",
  },
  {
    id: "TM-A009",
    text: "If it is a queue of work, use queue.Queue(maxsize=...), so that the producer waits, or add consumers until they keep up. deque(maxlen=...) drops the oldest entries; that fits only a history.",
    named: (name) =>
      `If ${name} is a queue of work, use queue.Queue(maxsize=...), so that the producer waits, or add consumers until they keep up. deque(maxlen=...) drops the oldest entries; that fits only a history.`,
    when: "A deque, or a list with the name of a queue, grows.",
    kinds: OF_OBJECTS,
    fits: (facts) =>
      DEQUE.test(facts.holder?.type ?? "") ||
      (LIST.test(facts.holder?.type ?? "") && QUEUE_NAME.test(lastStep(facts))),
    insteadOf: ["TM-A001"],
    stands: "jobs",
    before: "jobs = collections.deque()\njobs.append(job)",
    after:
      "jobs = queue.Queue(maxsize=1000)\njobs.put(job)   # waits while it is full\n# a history: collections.deque(maxlen=1000)",
  },
  {
    id: "TM-A014",
    text: "Let the logging handler flush: give the MemoryHandler a target, a capacity of a few hundred records, and a flushLevel that occurs.",
    when: "A handler of the logging module buffers records and never flushes them.",
    kinds: OF_OBJECTS,
    fits: (facts) =>
      /^\.(?:buffer|records)$/.test(lastStep(facts)) &&
      /\/logging\//.test(facts.code) &&
      // A handler of the program's own has no target and no capacity.
      (facts.holder?.putters ?? []).every(({ file }) => /\/logging\//.test(file)),
    insteadOf: ["TM-A001"],
    before: "handler = MemoryHandler(capacity=10**9, target=None)",
    after: "handler = MemoryHandler(capacity=500, flushLevel=logging.ERROR, target=file_handler)",
  },
  {
    id: "TM-A015",
    text: "Use one logger for each module, and put the request into the record (logging.LoggerAdapter, extra=...): logging keeps every logger until the process exits.",
    when: "A program creates a logger for each request, user or job.",
    kinds: OF_OBJECTS,
    fits: ({ holder }) => holder?.path.includes(".loggerDict") ?? false,
    insteadOf: ["TM-A002", "TM-A004", "TM-A038"],
    before: 'log = logging.getLogger(f"app.request.{number}")',
    after: 'log = logging.LoggerAdapter(logging.getLogger("app.request"), {"request": number})',
  },
  {
    id: "TM-A016",
    text: "End the tasks: give what they wait for a timeout (asyncio.timeout, asyncio.wait_for), cancel them with the request, or start them in an asyncio.TaskGroup.",
    when: "asyncio tasks that never finish accumulate.",
    kinds: OF_OBJECTS,
    fits: ({ made = "" }) => NEW_TASK.test(made),
    insteadOf: ["TM-A001", "TM-A002"],
    before: "await event.wait()",
    after: "async with asyncio.timeout(30):\n    await event.wait()",
  },
  {
    id: "TM-A025",
    text: "Cancel the timer when what it waits for is done: handle = loop.call_later(...); handle.cancel(). The event loop keeps its arguments until it is due.",
    when: "Timers of an asyncio event loop (call_later, call_at) are far in the future and are not cancelled.",
    kinds: OF_OBJECTS,
    fits: ({ holder }) => holder?.path.at(-1) === "._scheduled",
    insteadOf: ["TM-A001", "TM-A009"],
    before: "loop.call_later(3600, expire, request)",
    after:
      "handle = loop.call_later(3600, expire, request)\n...\nhandle.cancel()   # when the request ends",
  },
  {
    id: "TM-A017",
    text: "Create the class once, outside of the function, or keep one class for each set of fields (functools.lru_cache with a maxsize).",
    when: "A class is created for each call (namedtuple, type, make_dataclass, create_model). A class is several KiB and in cycles of references.",
    kinds: [...OF_OBJECTS, "cycle-garbage"],
    fits: ({ code, added }) => NEW_CLASS.test(code) || (added?.get("type") ?? 0) >= MANY_CLASSES,
    before: 'def parse(line):\n    Row = namedtuple("Row", FIELDS)',
    after: 'Row = namedtuple("Row", FIELDS)\ndef parse(line): ...',
  },
  {
    id: "TM-A023",
    text: "Close each cursor when its rows have been read, or read all of them (fetchall): an open cursor keeps its rows and sort buffers in the database library.",
    named: (name) =>
      `Close the cursors or results in ${name} when their rows have been read, or read all of them (fetchall): an open one keeps its rows and sort buffers in the database library.`,
    when: "A database library keeps memory for cursors or results, and a list, dict or set holds them.",
    kinds: [...OF_OBJECTS, "native-leak"],
    fits: ({ holder, code }) =>
      /^(?:list|dict|set|collections\.)/.test(holder?.type ?? "") && DATABASE.test(code),
    insteadOf: ["TM-A001", "TM-A002", "TM-A008", "TM-A030"],
    before: "cursor = db.execute(query)\nrow = cursor.fetchone()",
    after: "with contextlib.closing(db.execute(query)) as cursor:\n    row = cursor.fetchone()",
  },
  {
    id: "TM-A026",
    text: "Delete what the library keeps for the object when it is no longer needed (rows of an in-memory database, nodes of a document, remembered objects of a pickler), or close the object and create a new one from time to time.",
    named: (name) =>
      `Delete what the library keeps for ${name} when it is no longer needed (rows of an in-memory database, nodes of a document, remembered objects of a pickler), or close ${name} and create a new one from time to time.`,
    when: "A library allocates more and more memory for one object, such as the connection of an in-memory database.",
    kinds: OF_OBJECTS,
    fits: ({ isOfOneObject }) => isOfOneObject === true,
    stands: "db",
    before: 'db.execute("insert into events values (?)", [event])',
    after:
      'db.execute("insert into events values (?)", [event])\ndb.execute("delete from events where id < ?", [oldest])',
  },
  {
    id: "TM-A024",
    text: "Drop each thread when it has ended, or use a ThreadPoolExecutor: a Thread object keeps its attributes.",
    named: (name) =>
      `Drop each thread from ${name} when it has ended, or use a ThreadPoolExecutor: a Thread object keeps its attributes.`,
    when: "Thread objects accumulate after their threads have ended.",
    kinds: OF_OBJECTS,
    fits: (facts) => facts.holder !== null && added(facts, "threading.Thread") >= MANY_THREADS,
    insteadOf: ["TM-A001", "TM-A002", "TM-A004", "TM-A008", "TM-A037", "TM-A038"],
    stands: "threads",
    before: "threads.append(thread)",
    after: "threads[:] = [each for each in threads if each.is_alive()]\nthreads.append(thread)",
  },
  {
    id: "TM-A027",
    text: "Create the finalizer for an object that ends with the request or session, or call its detach() once nothing is left to release: until then it keeps its function and arguments.",
    when: "Finalizers (weakref.finalize) of objects that live as long as the program accumulate.",
    kinds: OF_OBJECTS,
    fits: ({ holder }) => /^module weakref finalize \._registry/.test(holder?.path.join(" ") ?? ""),
    insteadOf: ["TM-A002", "TM-A004", "TM-A038"],
    before: "weakref.finalize(app, release, buffer)",
    after: "finalizer = weakref.finalize(session, release, buffer)\n...\nfinalizer.detach()",
  },
  {
    id: "TM-A029",
    text: "Remove weak references whose objects are gone: give each a callback (weakref.ref(listener, listeners.remove)), or use a weakref.WeakSet.",
    named: (name) =>
      `Remove weak references from ${name} whose objects are gone: give each a callback, or use a weakref.WeakSet.`,
    when: "Weak references to objects that are gone accumulate.",
    kinds: OF_OBJECTS,
    fits: (facts) =>
      COLLECTION.test(facts.holder?.type ?? "") &&
      added(facts, "weakref.ReferenceType") >= MANY_CALLBACKS,
    insteadOf: ["TM-A001", "TM-A002", "TM-A004", "TM-A037", "TM-A038"],
    stands: "listeners",
    before: "listeners.append(weakref.ref(listener))",
    after: "listeners.append(weakref.ref(listener, listeners.remove))",
  },
  {
    id: "TM-A032",
    text: "Load the code without a new module (runpy.run_path), or remove the modules that are no longer needed: del sys.modules[name].",
    when: "Modules are loaded repeatedly, under new names, and sys.modules keeps them.",
    kinds: OF_OBJECTS,
    fits: ({ holder }) =>
      /^(?:module sys > )?(?:sys\.)?modules$/.test(holder?.path.join(" > ") ?? ""),
    insteadOf: ["TM-A002"],
    before: "module = importlib.util.module_from_spec(spec)\nsys.modules[name] = module",
    after: "names = runpy.run_path(path)   # a dict; nothing keeps it",
  },
  {
    id: "TM-A033",
    text: "Remove the entries that are no longer needed, such as timers that were cancelled, and restore the order of the heap.",
    named: (name) =>
      `Remove the entries that are no longer needed from ${name}, such as timers that were cancelled, and restore the order of the heap.`,
    when: "A list that heapq keeps in order grows.",
    kinds: OF_OBJECTS,
    fits: (facts) => /^list/.test(facts.holder?.type ?? "") && HEAP_NAME.test(lastStep(facts)),
    insteadOf: ["TM-A001", "TM-A009"],
    stands: "timers",
    before: "heapq.heappush(timers, (due, timer))",
    after:
      "timers[:] = [each for each in timers if not each[1].cancelled]\nheapq.heapify(timers)\nheapq.heappush(timers, (due, timer))",
  },
  {
    id: "TM-A034",
    text: "Let the pickler forget what it has written (clear_memo()) after each dump, or create a new one: it remembers each object, to refer to it later.",
    when: "One Pickler writes object after object.",
    kinds: OF_OBJECTS,
    fits: ({ holder }) => /Pickler$/.test(holder?.type ?? ""),
    insteadOf: ["TM-A026"],
    stands: "pickler",
    before: "pickler.dump(message)",
    after: "pickler.dump(message)\npickler.clear_memo()",
  },
  {
    id: "TM-A035",
    text: "Read the iterators of itertools.tee at the same pace, or read the source twice: tee keeps what one of them has read and another has not.",
    when: "itertools.tee keeps what one of its iterators has not read yet.",
    kinds: OF_OBJECTS,
    fits: ({ holder }) => /itertools\._tee/.test([holder?.type, ...(holder?.path ?? [])].join(" ")),
    before: "work, audit = itertools.tee(events)",
    after: "for event in events:\n    process(event)\n    record(event)",
  },
  ...registryAdvice(
    "TM-A004",
    {
      when: "A set of listeners, callbacks or handlers only grows.",
      before: "registry.add(listener)",
      after: "registry.add(listener)\n...\nregistry.discard(listener)",
    },
    (type) => !LIST.test(type) && !DICT.test(type),
  ),
  ...registryAdvice(
    "TM-A037",
    {
      when: "A list of listeners, callbacks or handlers only grows.",
      before: "registry.append(listener)",
      after: "registry.append(listener)\n...\nregistry.remove(listener)",
    },
    (type) => LIST.test(type),
  ),
  ...registryAdvice(
    "TM-A038",
    {
      when: "A dict of listeners, callbacks or handlers only grows.",
      before: "registry[key] = listener",
      after: "registry[key] = listener\n...\nregistry.pop(key, None)",
    },
    (type) => DICT.test(type),
  ),
  {
    id: "TM-A001",
    text: "Bound the list or deque: keep the last N entries, or write older ones to disk.",
    named: (name, facts) =>
      `Bound ${name}: keep the last N entries, or write older ones to disk.${ifEntriesGrow(facts)}`,
    when: "A list or deque that lives as long as the program grows.",
    kinds: OF_OBJECTS,
    holder: LIST,
    stands: "history",
    before: "history = []\nhistory.append(record)",
    after: "history = collections.deque(maxlen=10_000)\nhistory.append(record)",
  },
  {
    id: "TM-A002",
    text: "Bound the dict: evict the oldest entry, or let entries expire.",
    named: (name, facts) =>
      `Bound ${name}: evict the oldest entry, or let entries expire.${ifEntriesGrow(facts)}`,
    when: "A dict gains a key for each request, user or document, and keys are never removed.",
    kinds: OF_OBJECTS,
    holder: DICT,
    stands: "stats",
    before: "stats[key] = value",
    after: "stats[key] = value\nwhile len(stats) > LIMIT:\n    stats.pop(next(iter(stats)))",
  },
  {
    id: "TM-A028",
    text: "Bound the containers in the holder: keep the last N entries of each, or write older ones to disk.",
    named: (name, { holder }) =>
      `Bound the containers in ${name}: keep the last N entries of each, or write older ones to disk. ${name} itself had ${formatExactCount(holder?.entries ?? 0)} entries when they were counted.`,
    when: "The lists, dicts or sets that a dict or list holds grow, while their number stays about the same.",
    kinds: OF_OBJECTS,
    fits: (facts) =>
      facts.containersGrow === true &&
      (LIST.test(facts.holder?.type ?? "") || DICT.test(facts.holder?.type ?? "")) &&
      !isQueue(facts) &&
      !isLruCache(facts) &&
      !BUFFER.test(lastStep(facts)),
    insteadOf: ["TM-A001", "TM-A002"],
    stands: "events",
    before: "events.setdefault(key, []).append(event)",
    after: "events.setdefault(key, collections.deque(maxlen=1_000)).append(event)",
  },
  {
    id: "TM-A003",
    text: "Bound the cache (lru_cache(maxsize=...)), and do not cache methods, whose key includes self.",
    when: "functools.lru_cache has no bound, or decorates a method and keeps every self alive.",
    named: (name) =>
      `Bound the cache of ${name} (lru_cache(maxsize=...)), and do not cache methods, whose key includes self.`,
    kinds: OF_OBJECTS,
    fits: isLruCache,
    insteadOf: ["TM-A001", "TM-A002", "TM-A008"],
    before: "@lru_cache(maxsize=None)\ndef permissions(self, scope): ...",
    after: "@lru_cache(maxsize=1024)\ndef permissions(user_id, scope): ...",
  },
  {
    id: "TM-A013",
    text: "If the entries are slices of larger arrays, store copies (array[:10].copy()): a slice keeps the whole array.",
    named: (name) =>
      `If ${name} holds slices of larger arrays, store copies (array[:10].copy()): a slice keeps the whole array.`,
    when: "Memory of arrays is kept, and a list, dict or set holds them.",
    kinds: OF_OBJECTS,
    fits: ({ holder, code }) =>
      /^(?:list|dict|set|collections\.)/.test(holder?.type ?? "") && ARRAYS.test(code),
    stands: "heads",
    before: "heads[name] = array[:10]",
    after: "heads[name] = array[:10].copy()",
  },
  {
    id: "TM-A007",
    text: "The array itself grows: keep its last part, or write out older parts.",
    named: (name) => `${name} itself grows: keep its last part, or write out older parts.`,
    when: "An array is extended for as long as the program runs.",
    kinds: OF_OBJECTS,
    holder: /^numpy\.ndarray/,
    stands: "rows",
    before: "rows = numpy.concatenate([rows, batch])",
    after: "rows = numpy.concatenate([rows, batch])[-LIMIT:].copy()",
  },
  {
    id: "TM-A041",
    text: "The table itself grows: keep its last rows, or write out older ones.",
    named: (name) => `${name} itself grows: keep its last rows, or write out older ones.`,
    when: "A table of pandas is extended for as long as the program runs.",
    kinds: OF_OBJECTS,
    holder: /^pandas\./,
    stands: "table",
    before: "table = pandas.concat([table, batch])",
    after: "table = pandas.concat([table, batch]).tail(LIMIT).copy()",
  },
  {
    id: "TM-A018",
    text: "The buffer itself grows: delete the part that has been processed, or write it out.",
    named: (name) =>
      `${name} itself grows: delete the part that has been processed, or write it out.`,
    when: "A bytearray or an array.array is extended for as long as the program runs.",
    kinds: OF_OBJECTS,
    fits: (facts) => isOfType(facts, BUFFER) && !isOfType(facts, FILE_IN_MEMORY),
    stands: "buffer",
    before: "buffer += data",
    after: "buffer += data\ndel buffer[:processed]",
  },
  {
    id: "TM-A039",
    text: "The file in memory itself grows: empty it when it has been read, or write to a file on disk.",
    named: (name) =>
      `${name} itself grows: empty it when it has been read, or write to a file on disk.`,
    when: "A BytesIO or a StringIO is written to for as long as the program runs.",
    kinds: OF_OBJECTS,
    fits: (facts) => isOfType(facts, FILE_IN_MEMORY),
    stands: "buffer",
    before: "buffer.write(data)",
    after: "buffer.write(data)\n...\nbuffer.seek(0)\nbuffer.truncate()   # when it has been read",
  },
  {
    id: "TM-A036",
    text: "The text itself grows: keep its last part, or write it out.",
    named: (name) => `${name} itself grows: keep its last part, or write it out.`,
    when: "A str or bytes is extended for as long as the program runs.",
    kinds: OF_OBJECTS,
    holder: /^(?:str|bytes)$/,
    fits: (facts) => !isOfType(facts, BUFFER),
    stands: "text",
    before: "text += line",
    after: "text = (text + line)[-LIMIT:]",
  },
  {
    id: "TM-A008",
    text: "Remove entries from the holder when they are no longer needed.",
    named: (name, { holder }) => {
      const [putter] = holder?.putters ?? [];
      const where = putter === undefined ? "" : `; ${frameText(putter)} adds them`;
      return `Remove entries from ${name} when they are no longer needed${where}.`;
    },
    when: "Objects accumulate in a set or in an object of another type.",
    kinds: OF_OBJECTS,
    fits: ({ holder }) => holder !== null,
    isLast: true,
    stands: "active",
    before: "active.add(session)",
    after: "active.add(session)\ntry:\n    ...\nfinally:\n    active.discard(session)",
  },
  {
    id: "TM-A019",
    text: "No holder was found. While the program runs, tidemark heap PID --retained shows what holds the most memory.",
    when: "Objects accumulate, but the recording does not show what holds them.",
    kinds: OF_OBJECTS,
    fits: ({ holder }) => holder === null,
    isLast: true,
    before: "tidemark diagnose app.tidemark",
    after: "tidemark heap 4242 --retained",
  },
];

/** For a backlog: the piece that fits its queue. */
export const QUEUE_ADVICE: ReadonlySet<string> = new Set(["TM-A006", "TM-A009", "TM-A011"]);
