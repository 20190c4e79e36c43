"""Loads the agent late into this interpreter, as remote exec does: late.py LIBRARY OPTIONS CHECK

CHECK is one of the functions below. An unmet expectation raises AssertionError; figures that
the caller must compare with the pool are printed as JSON.
"""

import gc
import importlib.machinery
import importlib.util
import json
import os
import sys
import threading

# An embedding host may pass no arguments.
LIBRARY, OPTIONS, CHECK = sys.argv[1:4] if len(sys.argv) > 3 else os.environ["LATE"].split()


def load_from(path):
    loader = importlib.machinery.ExtensionFileLoader("_tidemark_agent", path)
    spec = importlib.util.spec_from_file_location("_tidemark_agent", path, loader=loader)
    agent = importlib.util.module_from_spec(spec)
    loader.exec_module(agent)
    return agent


def load():
    """As agent/README.md describes."""
    if "_tidemark_agent" not in sys.modules:
        sys.modules["_tidemark_agent"] = load_from(LIBRARY)
    return sys.modules["_tidemark_agent"]


def refused(call, *arguments):
    try:
        call(*arguments)
    except RuntimeError as why:
        return str(why)
    raise AssertionError(f"{arguments} was not refused")


def status(agent):
    return json.loads(agent.status())


# ---- what a process looks like from inside ------------------------------------------------


def mappings():
    """(start, end, permissions, path) of every mapping of a file, except the agent's."""
    found = []
    with open("/proc/self/maps") as lines:
        for line in lines:
            words = line.rstrip("\n").split(None, 5)
            start, end = (int(part, 16) for part in words[0].split("-"))
            path = words[5] if len(words) > 5 else ""
            if path.startswith("/") and "libtidemark" not in path:
                found.append((start, end, words[1], path))
    return found


def own_range():
    """The address range of the agent's machine code."""
    with open("/proc/self/maps") as lines:
        parts = [line.split()[0].split("-") for line in lines if "libtidemark" in line]
    return min(int(p[0], 16) for p in parts), max(int(p[1], 16) for p in parts)


def memory_of(start, end):
    with open("/proc/self/mem", "rb", 0) as memory:
        memory.seek(start)
        return memory.read(end - start)


def guarded_memory():
    """The contents of the pages that the loader made read-only in every object, by address."""
    return {(start, end): memory_of(start, end) for start, end, permissions, path in mappings()
            if permissions == "r--p" and ".so" in path and end - start <= 1 << 22}


def pointers_to_agent():
    """Addresses of words in other objects' data that point into the agent."""
    first, last = own_range()
    found = []
    for start, end, permissions, _ in mappings():
        if "x" in permissions or permissions[1] != "w" and permissions != "r--p" or end - start > 1 << 24:
            continue
        memory = memory_of(start, end)
        for upper in range(first >> 24, (last >> 24) + 1):
            pattern = upper.to_bytes(5, "little")  # the upper bytes of an address, at 3 of 8
            at = memory.find(pattern)
            while at >= 0:
                if at % 8 == 3 and first <= int.from_bytes(memory[at - 3:at + 5], "little") < last:
                    found.append(start + at - 3)
                at = memory.find(pattern, at + 1)
    return found


def open_descriptors():
    return sorted(os.listdir("/proc/self/fd"))


def resident_bytes():
    with open("/proc/self/statm") as numbers:
        return int(numbers.read().split()[1]) * 4096


# ---- checks ------------------------------------------------------------------------------------


def contract():
    agent = load()
    assert status(agent)["state"] == "inert", agent.status()
    assert json.loads(agent.disarm())["state"] == "inert"
    assert refused(agent.arm, "period=64K,nonsense").startswith("options: ")
    assert refused(agent.arm, "off").startswith("options: ")
    assert refused(agent.arm, "period=64K\0").startswith("options: ")
    assert refused(agent.arm, "pool=/nonexistent/pool").startswith("pool: ")
    assert refused(agent.arm, f"pool={__file__}").startswith("pool: ")
    for wrong in (None, 7, b"period=64K"):
        try:
            agent.arm(wrong)
        except TypeError:
            pass
        else:
            raise AssertionError(f"arm({wrong!r}) was not refused")
    assert status(agent)["state"] == "inert", agent.status()
    armed = json.loads(agent.arm(OPTIONS))
    assert armed["state"] == "armed" and armed["python"] == "full" and armed["slots"] > 5, armed
    assert armed["pythonVersion"] == sys.version.split()[0], armed
    assert refused(agent.arm, OPTIONS).startswith("armed: ")
    assert load() is agent
    assert json.loads(agent.disarm())["state"] == "inert"
    assert json.loads(agent.disarm())["state"] == "inert"
    assert json.loads(agent.arm(OPTIONS))["state"] == "armed"
    assert json.loads(agent.disarm())["state"] == "inert"


def figures():
    """Prints known sizes of objects, buffers and freed memory, for the caller to compare with the pool."""
    agent = load()
    count_known(agent)


def preloaded():
    """The same with the library preloaded."""
    agent = load()
    assert status(agent)["entry"] == "preloaded" and status(agent)["state"] == "inert", agent.status()
    count_known(agent)
    assert status(agent)["state"] == "inert"


def count_known(agent):
    before = [bytes(1000) for _ in range(5000)]
    agent.arm(OPTIONS)
    objects = [str(i) * 20 for i in range(100_000)]
    buffers = [bytearray(5000) for _ in range(4000)]
    passing = list(map(bytearray, [3000] * 4000))  # 3.9 and 3.10 keep a comprehension's frame
    del passing, before
    gc.collect()
    first = count_known.__code__.co_firstlineno
    print(json.dumps({
        "objects": [first + 3, sum(sys.getsizeof(o) for o in objects) / len(objects), len(objects)],
        "buffers": [first + 4, 5001, len(buffers)],
        "passing": [first + 5, 3001, 0],
    }))
    agent.disarm()
    assert len(objects) == 100_000 and len(buffers) == 4000


def trace():
    """After the agent leaves, every word of every object has its former value."""
    agent = load()
    blocks = sys.getallocatedblocks()
    agent.arm(OPTIONS)
    agent.disarm()
    before, maps, descriptors = guarded_memory(), mappings(), open_descriptors()
    agent.arm(OPTIONS)
    assert len(pointers_to_agent()) >= status(agent)["slots"] - 2, "no pointers to the agent while it is armed"
    kept = [bytes(n) for n in range(3000)]
    import decimal, sqlite3  # noqa: F401  (objects loaded meanwhile)
    kept += [bytearray(n) for n in range(3000)]
    agent.disarm()
    left = pointers_to_agent()
    assert not left, f"{len(left)} words still lead to the agent: {[hex(a) for a in left[:5]]}"
    after = guarded_memory()
    for place, memory in before.items():
        assert after.get(place) == memory, f"the memory at {place[0]:x} changed"
    still = set(mappings())
    assert all(m in still for m in maps), f"{[m for m in maps if m not in still][:3]} changed"
    assert open_descriptors() == descriptors, open_descriptors()
    del kept
    gc.collect()
    assert sys.getallocatedblocks() - blocks < 20_000


def cycles():
    """Armed and disarmed thousands of times under load: nothing grows, nothing breaks."""
    count = int(os.environ["CYCLES"])
    agent = load()
    stop, errors = threading.Event(), []
    try:
        import numpy
    except ImportError:
        numpy = None

    def churn(seed):
        kept = {}
        turn = seed
        try:
            while not stop.is_set():
                turn = (turn * 1103515245 + 12345) & 0x7FFFFFFF
                key = turn % 500
                if numpy is not None and turn & 64:
                    kept[key] = numpy.full(turn % 4000 + 1, key, dtype="i8")
                    other = kept.get((key + 1) % 500)
                    if isinstance(other, numpy.ndarray):
                        assert int(other[0]) == (key + 1) % 500 == int(other[-1])
                else:
                    kept[key] = [str(key), bytearray(turn % 3000), {key: turn}]
        except BaseException as error:
            errors.append(repr(error))

    threads = [threading.Thread(target=churn, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    figures = []
    for cycle in range(count):
        agent.arm(OPTIONS)
        own = [bytes(700) for _ in range(50)]
        agent.disarm()
        del own
        if cycle % 100 == 99 or cycle == count - 1:
            figures.append((len(open_descriptors()), sum(1 for _ in open("/proc/self/maps")), resident_bytes()))
        if errors:
            break
    stop.set()
    for thread in threads:
        thread.join()
    assert not errors, errors
    assert not pointers_to_agent()
    descriptors, maps, resident = zip(*figures)
    assert max(descriptors) == min(descriptors), descriptors
    assert max(maps) - maps[0] < 40, maps
    assert resident[-1] - resident[0] < 24 << 20, resident
    print(json.dumps({"cycles": count, "descriptors": descriptors[-1], "maps": maps, "resident": resident}))


def forks():
    """A child of an armed process records into its own pool or none, and can be disarmed too."""
    agent = load()
    agent.arm(OPTIONS)
    kept = [bytearray(5000) for _ in range(1000)]
    pid = os.fork()
    if pid == 0:
        try:
            own = [bytearray(5000) for _ in range(1000)]
            assert status(agent)["pid"] == os.getpid()
            assert status(agent)["state"] == "armed", agent.status()
            del kept
            assert json.loads(agent.disarm())["state"] == "inert"
            assert json.loads(agent.arm(OPTIONS))["state"] == "armed"
            own += [bytearray(5000) for _ in range(1000)]
            agent.disarm()
        except BaseException as error:
            print(repr(error), file=sys.stderr)
            os._exit(1)
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    del kept
    agent.disarm()
    pid = os.fork()
    if pid == 0:
        own = [bytearray(5000) for _ in range(100)]
        os._exit(0 if status(agent)["state"] == "inert" and own else 1)
    assert os.waitpid(pid, 0)[1] == 0


def wrapped():
    """tracemalloc starts and stops around an attach, in every order."""
    import tracemalloc
    agent = load()
    tracemalloc.start()
    agent.arm(OPTIONS)
    kept = [str(i) * 9 for i in range(20_000)]
    agent.disarm()
    tracemalloc.stop()
    agent.arm(OPTIONS)
    tracemalloc.start()
    kept += [str(i) * 9 for i in range(20_000)]
    agent.disarm()
    kept += [str(i) * 9 for i in range(20_000)]
    tracemalloc.stop()
    for _ in range(10):
        agent.arm(OPTIONS)
        kept += [str(i) * 9 for i in range(2000)]
        agent.disarm()
    assert json.loads(agent.arm(OPTIONS))["python"] == "full", agent.status()
    agent.disarm()
    del kept


def exits():
    """An armed process exits while daemon threads run."""
    load().arm(OPTIONS)
    kept = [bytearray(5000) for _ in range(2000)]
    print(json.dumps({"kept": [exits.__code__.co_firstlineno + 3, 5001, len(kept)]}))

    def churn():
        while True:
            [bytearray(3000) for _ in range(10)]

    for _ in range(3):
        threading.Thread(target=churn, daemon=True).start()
    globals()["kept"] = kept


def silent():
    """At exit, the agent makes no system call after the interpreter has ended (barrier.c)."""
    import ctypes
    agent = load()
    if status(agent)["state"] == "inert":
        agent.arm(OPTIONS)
    globals()["kept"] = [bytearray(5000) for _ in range(2000)]
    print(ctypes.CDLL(os.environ["BARRIER"]).bar_system_calls())


def copies():
    """Loads the agent from a memfd that is closed at once, then a second copy: the first copy acts for both."""
    with open(LIBRARY, "rb") as file:
        content = file.read()
    memory = os.memfd_create("agent")
    os.write(memory, content)
    first = load_from(f"/proc/self/fd/{memory}")
    os.close(memory)
    armed = json.loads(first.arm(OPTIONS))
    assert armed["state"] == "armed", armed
    # Between the two calls, the agent may find newly loaded objects, including the copy.
    def agrees(copy):
        return any(copy.status() == first.status() for _ in range(50))

    assert agrees(load_from(f"/proc/self/fd/{memory}"))
    second = load()
    assert agrees(second)
    assert refused(second.arm, OPTIONS).startswith("armed: ")
    assert json.loads(second.disarm())["state"] == "inert" == status(first)["state"]
    second.arm(OPTIONS)
    assert status(first)["state"] == "armed"
    first.disarm()


def modes():
    agent = load()
    for _ in range(3):
        agent.arm(OPTIONS)
        kept = [str(n) * 20 for n in range(5000)]
        kept += [bytearray(n) for n in range(2000)]
        agent.disarm()
        assert kept[4999] == "4999" * 20


def lapsed():
    """The recorder's lease expires: a thread without the GIL, then one with it, undoes everything."""
    import mmap
    import struct
    agent = load()
    armed = json.loads(agent.arm(OPTIONS))
    kept = [bytearray(5000) for _ in range(500)]
    with open(armed["pool"], "r+b") as file:
        head = mmap.mmap(file.fileno(), 4096)
        place = 8 + 4 + 4 + 8 + 8 + 8 + 8 + 4 * 4
        assert head[place:place + 8] == bytes(8)
        head[place:place + 8] = struct.pack("<Q", 1)
        head.close()
    for _ in range(100_000):
        kept.append(bytearray(5000))
        if len(kept) > 1000:
            kept = kept[-500:]
            if status(agent)["state"] == "inert":
                break
    assert status(agent)["state"] == "inert", agent.status()
    if os.path.exists("/proc/self/maps"):
        assert not pointers_to_agent()
    assert json.loads(agent.arm(OPTIONS))["state"] == "armed"
    agent.disarm()


def loaded():
    """Objects loaded while armed are found and hooked."""
    agent = load()
    agent.arm(OPTIONS)
    before = status(agent)["objects"]
    import sqlite3
    kept, database = [], sqlite3.connect(":memory:")
    database.execute("create table t (a)")
    # The agent searches for new objects on its slow path, and not at every sample: on a fast machine the first search
    # may come after thousands of allocations.
    for n in range(3_000_000):
        kept.append(bytearray(3000))
        database.execute("insert into t values (?)", (str(n) * 100,))
        if n % 3000 == 2999:
            if status(agent)["objects"] > before:
                break
            kept.clear()
            database.execute("delete from t")
    assert status(agent)["objects"] > before, agent.status()
    database.close()
    agent.disarm()


globals()[CHECK]()
