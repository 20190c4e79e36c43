"""Claim: removing the items of a dict, a set or a list gives their memory back."""

import sys
from collections import deque

from figures import conclude, mib, show

NUMBER = 1_000_000
sizes = {}
for name, make, remove in [
    ("dict", lambda: dict.fromkeys(range(NUMBER)), lambda items: items.popitem()),
    ("set", lambda: set(range(NUMBER)), lambda items: items.pop()),
    ("list", lambda: list(range(NUMBER)), lambda items: items.pop()),
    ("deque", lambda: deque(range(NUMBER)), lambda items: items.pop()),
]:
    items = make()
    full = sys.getsizeof(items)
    while items:
        remove(items)
    emptied = sys.getsizeof(items)
    items.clear()
    cleared = sys.getsizeof(items)
    sizes[name] = (full, emptied, cleared)
    show(f"{name} with 1,000,000 items: its table", mib(full))
    show("  all removed, one by one", mib(emptied))
    show("  after clear()", mib(cleared))

conclude(
    all(sizes[name][1] == sizes[name][0] for name in ("dict", "set"))
    and all(sizes[name][1] < 0.1 * sizes[name][0] for name in ("list", "deque"))
    and all(cleared < 1024 for _, _, cleared in sizes.values()),
    "a dict or set keeps its table until clear(), or until it grows again",
)
