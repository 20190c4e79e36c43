"""Claim: a program needs what it has at its end."""

import json
import resource

from figures import conclude, mib, rss, show

text = json.dumps([{"id": number, "price": number * 0.01} for number in range(200_000)])
before = rss()


def total():
    rows = json.loads(text)
    return sum(row["price"] for row in rows)


total()
at_end = rss() - before
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before
show("a JSON document of", mib(len(text)))
show("RSS growth after a function that sums its prices", mib(at_end))
show("RSS growth at the peak, inside the function", mib(peak))
show("peak as a multiple of the document's size", f"{peak / len(text):.1f}")
conclude(peak > 3 * len(text), "a limit must allow for the peak, which is gone at the end")
