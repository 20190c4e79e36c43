"""Looks up attributes by a new name each time, and keeps some of the names.

Prints a JSON object: the lines whose names are freed, and one line whose names stay live, with their number.
"""

import json
import os
import sys
import time

COUNT = 400_000
KEPT = 100_000


class Thing:
    some_attribute = 1


def here():
    return sys._getframe(1).f_lineno


def look_up():
    thing, some = Thing(), "some_"
    for _ in range(COUNT):
        getattr(thing, f"{some}attribute")
    return here() - 1


def look_up_in_a_class():
    some = "some_"
    for _ in range(COUNT):
        getattr(Thing, f"{some}attribute")  # also in its metaclass
    return here() - 1


def look_up_and_keep():
    thing, kept = Thing(), []
    for n in range(KEPT):
        kept.append(f"attribute_{n}")
        getattr(thing, kept[-1], None)
    return here() - 2, kept


gone_lines = [look_up(), look_up_in_a_class()]
kept_line, names = look_up_and_keep()
time.sleep(0.3)  # the agent reads the interpreter's cache now and then, when it takes a sample
later = [bytes(100) for _ in range(50_000)]
json.dump({"gone": gone_lines, "kept": [kept_line, len(names)]}, sys.stdout)
sys.stdout.flush()
os._exit(0)
