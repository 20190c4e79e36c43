"""Programs that know what they allocated: functions named site_NNNNN, each with its own blocks.

A site's function runs once for each of its rooms, and fills it with the same sizes. It allocates only its blocks: the
numbers and the rooms already exist. A bytes object requests exactly sys.getsizeof() bytes from its allocator, so
the truth is exact: small objects go to pymalloc, large ones to malloc."""

import json
import os
import random
import sys

OVERHEAD = sys.getsizeof(b"")
LARGEST_PLAN = 2_000
_truth: dict[str, dict[str, int]] = {}

TEMPLATE = """
def {name}(plan, room):
    for position, size in plan:
        block = bytes(size)
        if position >= 0:
            room[position] = block
    del block
"""


class Site:
    """Keeps at least `total` bytes, in blocks of up to twice `scale`, of which one in `keep_every` is kept."""

    def __init__(self, number: int, total: int, scale: int, keep_every: int = 1) -> None:
        self.name = f"site_{number:05d}"
        namespace: dict = {}
        exec(compile(TEMPLATE.format(name=self.name), "known.py", "exec"), namespace)
        self.function = namespace[self.name]
        self.plan: list[tuple[int, int]] = []
        self.runs = 0
        kept = 0
        while len(self.plan) < LARGEST_PLAN and kept < max(total / 32, scale):
            size = random.randrange(OVERHEAD + 1, max(2 * scale, OVERHEAD + 2))
            stays = len(self.plan) % keep_every == 0
            self.plan.append((len(self.plan) // keep_every if stays else -1, size - OVERHEAD))
            kept += size if stays else 0
        places = sum(position >= 0 for position, _ in self.plan)
        self.rooms = [[None] * places for _ in range(max(1, -(-total // kept)))]

    def run_next(self) -> bool:
        """Fills the next room; returns false if there is none."""
        if self.runs == len(self.rooms):
            return False
        self.function(self.plan, self.rooms[self.runs])
        self.runs += 1
        return True

    def run(self) -> None:
        while self.run_next():
            pass

    def truth(self) -> dict[str, int]:
        sizes = [(position >= 0, size + OVERHEAD) for position, size in self.plan]
        return {
            "liveBytes": self.runs * sum(size for stays, size in sizes if stays),
            "allocatedBytes": self.runs * sum(size for _, size in sizes),
        }


def report(sites: list[Site], more: dict[str, dict[str, int]] | None = None) -> None:
    """Exits without freeing, so that what was kept is live at the end."""
    print(json.dumps({site.name: site.truth() for site in sites} | (more or {})))
    sys.stdout.flush()
    os._exit(0)
