/** What advice asks about the holder of growing objects: its type, its name, and what became more. */
import { formatCount, formatExactCount } from "../../model/base/numbers.js";
import type { AdviceFacts } from "./advice_entry.js";
import { LRU_CACHE } from "./holder_name.js";

export const LIST = /^(?:list|collections\.deque|deque|queue)/;
export const DICT = /^(?:dict|collections\.(?:OrderedDict|defaultdict|Counter))/;
export const DEQUE = /^(?:collections\.)?deque$/;
/** The attributes in which queue.Queue, asyncio.Queue and multiprocessing.Queue keep their items. */
const QUEUE_ATTRIBUTE = /^\.(?:queue|_queue|_buffer)$/;
export const QUEUE_NAME =
  /queue|backlog|inbox|outbox|mailbox|pending|todo|(?:^|[._])(?:jobs|work|work_?items)$/i;
const REGISTRY =
  /listener|subscri|(?:^|[._])subs$|observer|callback|handlers|hooks|registr|signals|add_done/i;
export const HEAP_NAME = /heap/i;
/** Their elements have no keys. */
export const COLLECTION = /^(?:list|set|collections\.deque)/;
export const ERRORS =
  /(?:^|[._])(?:errors?|exceptions?|failures?|failed|tracebacks?|excs?|exc_infos?)$/i;
export const ARRAYS = /_multiarray_umath|\/(?:numpy|pandas)\//;
/** The leaf of a stack that creates a task. */
export const NEW_TASK = /(?:create_task|ensure_future) \S*asyncio\//;
/** Standard-library and other functions that create a class at each call. */
export const NEW_CLASS =
  /\b(?:namedtuple \S*collections\/|new_class \S*types\.py|make_dataclass \S*dataclasses|create_model \S*pydantic|_create_\w+ \S*enum\.py)/;
/** Fewer new classes may come from imports. */
export const MANY_CLASSES = 50;

export const lastStep = ({ holder }: AdviceFacts): string => holder?.path.at(-1) ?? "";
export const isQueue = (facts: AdviceFacts): boolean =>
  /Queue$/.test(facts.holder?.type ?? "") ||
  (LIST.test(facts.holder?.type ?? "") && QUEUE_ATTRIBUTE.test(lastStep(facts)));
export const isLruCache = (facts: AdviceFacts): boolean =>
  /lru_cache/.test(facts.holder?.type ?? "") || LRU_CACHE.test(lastStep(facts));
export const ofExecutor = ({ holder }: AdviceFacts): boolean =>
  holder?.path.some((step) => /^\._(?:work_queue|pending_work_items|work_ids)\b/.test(step)) ??
  false;
/** A buffer of bytes or text, or what it keeps in its C structure. */
export const BUFFER = /^(?:field of )?(?:bytearray|array\.array|_?io\.(?:BytesIO|StringIO))/;
export const FILE_IN_MEMORY = /^(?:field of )?_?io\.(?:BytesIO|StringIO)/;
/** Native code of database drivers: what it allocates for a cursor is freed when that is closed. */
export const DATABASE =
  /\/(?:libsqlite3|_sqlite3|libpq|libmysqlclient|libmariadb|libodbc|libduckdb|_duckdb|oracledb|pyodbc)[^/]*\.so/;
/** Fewer new functions may be decorators or imports; fewer new threads a pool. */
export const MANY_CALLBACKS = 50;
export const MANY_THREADS = 20;

export const added = ({ added: types }: AdviceFacts, type: string): number => types?.get(type) ?? 0;
export const holdsCallbacks = (facts: AdviceFacts): boolean =>
  COLLECTION.test(facts.holder?.type ?? "") &&
  added(facts, "function") + added(facts, "method") >= MANY_CALLBACKS;
/** A step into a container or a C structure, which has no name of its own: dict["changed"], list[...], each of 4. */
const UNNAMED = /\[.*\]$|^each of |^field of /;
/** The last steps that name the holder: `.subs` and dict["changed"], but not `.handlers` before `.records`. */
function nameSteps(path: readonly string[]): readonly string[] {
  const named = path.findLastIndex((step) => !UNNAMED.test(step));
  return path.slice(Math.max(0, named));
}
/** An entry with fewer objects is rather a record than a container. */
const MANY_OF_ENTRY = 100;
export function ifEntriesGrow({ holder, objectsOfEntry = 0 }: AdviceFacts): string {
  return holder !== null && objectsOfEntry >= MANY_OF_ENTRY
    ? ` Its ${formatExactCount(holder.entries)} entries held about ${formatCount(Math.round(objectsOfEntry))} objects each when they were counted: if the entries are what grows, bound those.`
    : "";
}
export const isOfType = (facts: AdviceFacts, type: RegExp): boolean =>
  type.test(facts.holder?.type ?? "") || type.test(lastStep(facts));
export const isRegistry = ({ holder }: AdviceFacts): boolean =>
  holder !== null &&
  [
    ...nameSteps(holder.path).filter((step) => !/^(?:module|thread|frame) /.test(step)),
    ...(holder.putters ?? []).map((putter) => putter.function),
  ].some((step) => REGISTRY.test(step));

/** Nothing else may refer to a closure or a task, which would end at once if the registry held a weak reference. */
export const holdsTheOnly = (facts: AdviceFacts): boolean =>
  ["function", "method", "_asyncio.Task"].some((type) => added(facts, type) >= MANY_CALLBACKS);
