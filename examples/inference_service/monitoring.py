"""What the service remembers of the requests it has answered.

`recent` is bounded. `term_counts` is not: its keys hold the document, every document is new, and
nothing ever takes a key out. That is the leak this example is about.
"""

import collections
import threading

RECENT_REQUESTS = 1_000


class Monitor:
    def __init__(self):
        self.lock = threading.Lock()
        self.answered = 0
        self.recent = collections.deque(maxlen=RECENT_REQUESTS)
        self.term_counts = {}

    def record(self, document, terms, probabilities, seconds):
        with self.lock:
            self.answered += 1
            self.recent.append(
                {"document": document, "probabilities": probabilities, "seconds": seconds}
            )
            for term in terms:
                key = f"{document}/{term}"
                self.term_counts[key] = self.term_counts.get(key, 0) + 1

    def summary(self):
        with self.lock:
            return (
                f"{self.answered} requests answered; {len(self.recent)} recent ones kept, "
                f"{len(self.term_counts)} term counters"
            )
