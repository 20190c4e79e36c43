/** The bounds that real programs keep in their caches and queues. */
import { afterEach, expect, test } from "vitest";
import { someInterpreters } from "../../test/environment.js";
import { startPython, type Waiting } from "../../test/python_program.js";
import { present } from "../model/base/present.js";
import { lookUpHolders } from "./holder_lookup.js";
import { sitesOfProgram } from "./sites_of_program.fixture.js";

let waiting: Waiting;
afterEach(async () => await waiting.stop());

/** Each variable holds 300 items; some are half full, some have no bound that holds. */
const CACHES = `
import asyncio, collections, functools, multiprocessing, queue
class Item:
    def __init__(self, n):
        self.text = "item %d" % n
class Cache(dict):
    def __init__(self, maxsize, sized=False):
        self.__maxsize = maxsize
        self.__data = {}
        self.__order = collections.OrderedDict()
        self.__currsize = 0
        self.sized = sized
    def put(self, item):
        self.__data[item.text] = item
        self.__order[item.text] = None
        self.__currsize += 2000 if self.sized else 1
class Recent(collections.OrderedDict):
    max_entries = None
class Slots:
    __slots__ = ("rows", "capacity")
class Results:
    def __init__(self, limit):
        self.limit = limit
        self.rows = []
class Server:
    def __init__(self):
        self.max_size = 65536
        self.routes = ["/"] * 20
        self.sessions = {}
class Pages:
    MAX_PAGES = 5
    MAX_ITEMS = 1400
    def __init__(self):
        self.rows = []
class Newest(Pages):
    pass
class Sessions:
    MAX_SIZE = 65536
    def __init__(self):
        self.sessions = {}
        self.routes = ["/"] * 20
ORDERS, MAX_ORDERS = {}, 1500
_row_cache, ROW_CACHE_SIZE = {}, 1600
recent_jobs, MAX_SIZE = [], 1700
CLIENTS, CLIENT_TIMEOUT = {}, 9000
UPLOADS, MAX_UPLOADS = {}, 100
def filled(put):
    items = [Item(n) for n in range(300)]
    for item in items:
        put(item)
    return [id(item) for item in items[::10]]
said = {}
mangled = Cache(600)
said["mangled"] = filled(mangled.put)
sized = Cache(1_800_000, sized=True)
said["sized"] = filled(sized.put)
subclass = Recent()
subclass.max_entries = 700
said["subclass"] = filled(lambda item: subclass.__setitem__(item.text, item))
slots = Slots()
slots.rows, slots.capacity = [], 800
said["slots"] = filled(slots.rows.append)
results = Results(900)
said["results"] = filled(results.rows.append)
jobs = queue.Queue(maxsize=1000)
said["jobs"] = filled(jobs.put)
loop = asyncio.new_event_loop()
asyncio.set_event_loop(loop)
tasks = asyncio.Queue(maxsize=1100)
said["tasks"] = filled(tasks.put_nowait)
latest = collections.deque(maxlen=1200)
said["latest"] = filled(latest.append)
remembered = []
@functools.lru_cache(maxsize=1300)
def remember(n):
    remembered.append(id(item := Item(n)))
    return item
for n in range(300):
    remember(n)
said["remember"] = remembered[::10]
plain = {}
said["plain"] = filled(lambda item: plain.__setitem__(item.text, item))
endless = queue.Queue()
said["endless"] = filled(endless.put)
waiting = multiprocessing.Queue()
said["waiting"] = filled(waiting._buffer.append)
unheeded = Results(100)
said["unheeded"] = filled(unheeded.rows.append)
server = Server()
said["server"] = filled(lambda item: server.sessions.__setitem__(item.text, item))
pages = Newest()
said["pages"] = filled(pages.rows.append)
of_class = Sessions()
said["of_class"] = filled(lambda item: of_class.sessions.__setitem__(item.text, item))
said["orders"] = filled(lambda item: ORDERS.__setitem__(item.text, item))
said["row_cache"] = filled(lambda item: _row_cache.__setitem__(item.text, item))
said["recent_jobs"] = filled(recent_jobs.append)
said["clients"] = filled(lambda item: CLIENTS.__setitem__(item.text, item))
said["uploads"] = filled(lambda item: UPLOADS.__setitem__(item.text, item))
say(said)
`;

const BOUNDS = {
  ...{ mangled: 600, sized: 900, subclass: 700, slots: 800, results: 900 },
  ...{ jobs: 1000, tasks: 1100, latest: 1200, remember: 1300 },
  // Constants of a class or of the module.
  ...{ pages: 1400, orders: 1500, row_cache: 1600, recent_jobs: 1700 },
  ...{ of_class: 0, clients: 0, uploads: 0 },
  // No bound, one that is exceeded, and one of something else.
  ...{ plain: 0, endless: 0, waiting: 0, unheeded: 0, server: 0 },
};

test.each(someInterpreters(3))(
  "the bound of a container is read from it, from the object that wraps it, or from a constant of its class or module, Python $version",

  async (interpreter) => {
    waiting = await startPython(interpreter, CACHES);
    const { pid, said } = waiting;
    const sites = sitesOfProgram(said);
    const { rows } = present(lookUpHolders({ pid, sites, unsampled: null }).batch);
    expect(Object.fromEntries(rows.map(({ site, bound }) => [site, bound]))).toEqual(BOUNDS);
  },
);
