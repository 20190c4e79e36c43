"""Functions that add to containers, each in a different way, and others that only name the same containers."""
import collections
import heapq
import json
import os

SEEN = {}
# As a dataclass does: functions of no file among those of the module.
for name in ("first", "second", "third", "fourth"):
    exec(compile(f"def {name}(self): self.{name} = 0", "<string>", "exec"))


class Stats:
    def __init__(self):
        self.by_route = {}
        self.history = collections.deque()
        self.heap = []
        self.total = 0

    def observe(self, route, *others):
        first, second = others[0], others[1]
        series = self.by_route[route, first] = {"count": second}
        series["count"] += 1

    def slowest(self):
        report = {}
        for route, series in self.by_route.items():
            report[route] = series["count"]
        return report

    def keep(self, record):
        self.history.append(
            record
        )

    def oldest(self):
        names = []
        names.append(self.history[0] if self.history else None)
        return names

    def plan(self, job):
        heapq.heappush(self.heap, job)

    def hook(self):
        waiting = []

        def enter(output):
            waiting.append(output)

        def leave():
            return waiting[-1]

        return enter, leave


def remember(key, seen=SEEN):
    SEEN[key] = key
    return len(seen)


def recall(key):
    return SEEN.get(key)


def fill(registry, n):
    a = b = c = d = e = f = g = h = n
    registry.setdefault(a + b + c + d + e + f + g + h, n)
    return registry


STATS = Stats()
ENTER, LEAVE = STATS.hook()
REGISTRY = {}
for number in range(2000):  # hot code is specialized
    STATS.observe(number, number, number)
    STATS.keep(number)
    STATS.plan(number)
    STATS.oldest()
    ENTER(number)
    remember(number)
    recall(number)
    fill(REGISTRY, number)
STATS.slowest(), LEAVE()
print(json.dumps({}), flush=True)
os.read(0, 1)
