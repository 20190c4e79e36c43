"""A service for legal documents: its records are bounded, its counters by document are not."""
import os
import random
import time
from collections import deque

SECONDS = float(os.environ.get("LEAKBENCH_SECONDS", 40))
recent = deque(maxlen=2000)
running_stats = {}
WORDS = ["tort", "lien", "writ", "deed", "bail", "plea", "jury", "oath"]


def analyse(document):
    words = document.split()
    return {"length": len(words), "unique": len(set(words)), "text": document[:400]}


def record(identifier, analysis):
    recent.append((identifier, analysis))
    key = f"document-{identifier}-{analysis['unique']}"
    stats = running_stats.setdefault(key, {"count": 0, "total": 0.0, "lengths": [0] * 50})
    stats["count"] += 1
    stats["total"] += analysis["length"] * 1.5
    stats["lengths"][stats["count"] % 50] = analysis["length"]


def main():
    end = time.monotonic() + SECONDS
    identifier = 0
    while time.monotonic() < end:
        for _ in range(5):
            document = " ".join(random.choices(WORDS, k=120))
            record(identifier, analyse(document))
            identifier += 1
        time.sleep(0.008)


main()
