"""Holds objects in every kind of variable, with a separate class for each kind; prints a line, and waits."""

import asyncio
import collections
import contextvars
import functools
import io
import os
import pickle
import queue
import sys
import threading
import types
import weakref
import xml.etree.ElementTree

COUNT = 40


def held(name):
    return type(name, (), {"__init__": lambda self, number: setattr(self, "number", number)})


InList, InDict, InLocal, InClosure, InDefault = map(held, ["InList", "InDict", "InLocal", "InClosure", "InDefault"])
InKeywordDefault, InThread, InCoroutine = map(held, ["InKeywordDefault", "InThread", "InCoroutine"])
InGenerator, InContext, InTraceback = map(held, ["InGenerator", "InContext", "InTraceback"])
InPort, InMeter, InReplay = map(held, ["InPort", "InMeter", "InReplay"])
InClass, InShards, InCache = map(held, ["InClass", "InShards", "InCache"])
InConnections, InThreadLocal, InSessions = map(held, ["InConnections", "InThreadLocal", "InSessions"])
InService, InModules = map(held, ["InService", "InModules"])
InHub = held("InHub")
InPumps = held("InPumps")
InTitle = held("InTitle")
InQueue, InElements, InMemo = map(held, ["InQueue", "InElements", "InMemo"])

# Two lists that grow at the same time in one module; the module's dict must not be named for either.
several = [InList(n) for n in range(COUNT)]
indexed = {n: InDict(n) for n in range(COUNT * 3)}


class Link:
    def __init__(self, below):
        self.below = below


class Undo:
    top = None


undo = Undo()
for _ in range(COUNT * 10):
    undo.top = Link(undo.top)


class Played(Link):
    """Only a few are kept, and each keeps the one before it."""

    def __init__(self, number, below):
        super().__init__(below)
        self.screen = InReplay(number)


remembered = collections.deque(maxlen=4)
for n in range(COUNT * 4):
    remembered.append(Played(n, remembered[-1] if remembered else None))


class Title(str):
    def __new__(cls, number):
        title = super().__new__(cls, number)
        title.parent = InTitle(number)
        return title


titles = [Title(n) for n in range(COUNT)]


class Reading:
    def __init__(self, before):
        self.before = before


class Meter:
    last = None


meters = [Meter() for _ in range(5)]
for n in range(COUNT * 10):
    meters[n % 5].last = Reading(meters[n % 5].last)


class Step:
    def __init__(self, below):
        self.below = below


class InDepth(Step):
    pass


# Deeper than paths are followed.
depth = Undo()
for n in range(COUNT * 126):
    depth.top = (InDepth if n < COUNT else Step)(depth.top)


class Registry:
    members = []

    def __init__(self):
        self.shards = {key: [InShards(n) for n in range(COUNT)] for key in range(5)}


Registry.members.extend(InClass(n) for n in range(COUNT))
registry = Registry()


class Connection:
    def __init__(self):
        self.history = [InConnections(n) for n in range(COUNT)]


class Session:
    def __init__(self):
        self.rows = [InSessions(n) for n in range(4)]


# A few that grow, each independently, and many that do not.
connections = {f"peer {n}": Connection() for n in range(6)}
sessions = {n: Session() for n in range(COUNT)}


class Upload:
    def __init__(self):
        self.received = bytearray(4 << 20)


upload = Upload()


def make_handler():
    seen = [InClosure(n) for n in range(COUNT)]

    def handle(event):
        seen.append(event)

    return handle


handler = make_handler()


def add(item, bucket=[], *, known={}):
    bucket.append(item)


add.__defaults__[0].extend(InDefault(n) for n in range(COUNT))
add.__kwdefaults__["known"].update({n: InKeywordDefault(n) for n in range(COUNT)})

# C code keeps these in its own tables.
jobs = queue.SimpleQueue()
for n in range(COUNT):
    jobs.put(InQueue(n))
document = xml.etree.ElementTree.Element("document")
for n in range(COUNT):
    xml.etree.ElementTree.SubElement(document, "row").text = InElements(n)
pickler = pickle.Pickler(io.BytesIO())
pickler.dump([InMemo(n) for n in range(COUNT)])


def produce():
    produced = [InGenerator(n) for n in range(COUNT)]
    yield produced


generator = produce()
next(generator)
trail = contextvars.ContextVar("trail")


@functools.lru_cache(maxsize=400)
def cached(number):
    return InCache(number)


for number in range(COUNT):
    cached(number)


def fail():
    lost = [InTraceback(n) for n in range(COUNT)]
    raise ValueError(len(lost))


try:
    fail()
except ValueError as error:
    kept_error = error


def collect(ready, stop):
    history = [InThread(n) for n in range(COUNT)]
    ready.set()
    stop.wait()
    history.clear()


own = threading.local()


class Scratch(threading.local):
    pass


scratch = Scratch()
InScratch = held("InScratch")
scratch.rows = [InScratch(n) for n in range(COUNT)]


def remember(ready, stop):
    own.results = {n: InThreadLocal(n) for n in range(COUNT)}
    ready.wait()
    stop.wait()


class Service:
    def __init__(self):
        self.seen = [InService(n) for n in range(COUNT)]

    def run(self, stop):
        stop.wait()


async def serve():
    pending = [InCoroutine(n) for n in range(COUNT)]
    await asyncio.get_running_loop().create_future()
    pending.clear()


class Hub:
    """Its members wait, so an event loop that a module's variable refers to also holds them, by a shorter path."""

    def __init__(self, loop):
        self.rooms = {"lobby": {"members": [InHub(n) for n in range(COUNT)]}}
        self.timers = [loop.call_later(3600, setattr, member, "late", True) for member in self.rooms["lobby"]["members"]]


loop = asyncio.new_event_loop()
hub = Hub(loop)


class Pumps:
    def __init__(self):
        self.running = [InPumps(n) for n in range(COUNT)]


class Gateway:
    def __init__(self):
        self.services = {"chat": {"pumps": Pumps()}}


gateway = Gateway()
watched = weakref.WeakSet()
# As in a copy of a running program: where a weak reference was, there is now an unrelated object.
watched.data.add(gateway.services["chat"]["pumps"])


def make_rules(number):
    module = types.ModuleType(f"rules_{number}")
    module.rule = InModules(number)
    sys.modules[module.__name__] = module


for number in range(COUNT):
    make_rules(number)

# Each under a name of its own, as the results of a notebook's cells.
InNames, InGlobals = map(held, ["InNames", "InGlobals"])
for number in range(3):
    globals()[f"table_{number}"] = (InNames(number), number)
for number in range(COUNT):
    globals()[f"row_{number}"] = [InGlobals(number), InGlobals(-number), InGlobals(number)]


class Meter:
    """Only its bound method is held."""

    def __init__(self):
        self.readings = [InMeter(n) for n in range(COUNT)]

    def tick(self):
        return len(self.readings)


on_tick = [Meter().tick]


class Port:
    """A waiting function holds it and has called its methods: words above the top of the waiting stack, and those of a
    function that has returned, are stale."""

    def __init__(self):
        self.berths = [InPort(n) for n in range(COUNT)]
        self.waiting = [self.visit(n) for n in range(COUNT)]
        self.left = [self.visit(n) for n in range(COUNT)]
        for ship in self.waiting:
            next(ship)
        for ship in self.left:
            list(ship)

    def label(self, number, kind):
        return f"{kind} {number}"

    def visit(self, number):
        name = self.label(number, "ship")
        yield name


def main():
    results = [InLocal(n) for n in range(COUNT)]
    port = Port()
    trail.set([InContext(n) for n in range(COUNT)])
    ready, stop = threading.Event(), threading.Event()
    thread = threading.Thread(target=collect, args=(ready, stop))
    thread.start()
    ready.wait()
    service = Service()
    served = threading.Thread(target=service.run, args=(stop,))
    served.start()
    remembered = threading.Barrier(4)
    threads = [threading.Thread(target=remember, args=(remembered, stop)) for _ in range(3)]
    for other in threads:
        other.start()
    remembered.wait()
    loop = asyncio.new_event_loop()
    task = loop.create_task(serve())
    loop.run_until_complete(asyncio.sleep(0))
    os.write(1, b"{}\n")
    os.read(0, 1)
    stop.set()
    for other in [thread, served, *threads]:
        other.join()
    task.cancel()
    loop.run_until_complete(asyncio.gather(task, return_exceptions=True))
    loop.close()
    results.clear()
    port.berths.clear()
    service.seen.clear()


main()
