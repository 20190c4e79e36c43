"""Decodes requests from JSON, processes them, encodes responses as JSON, and pickles sessions."""

import json
import pickle
import random

random.seed(1)
ITEMS = [{"id": n, "name": f"item {n}", "tags": ["a", "b", str(n % 7)], "price": n * 1.25} for n in range(400)]
REQUESTS = [json.dumps({"user": n, "items": random.sample(range(400), 30)}) for n in range(200)]

sessions: dict[int, bytes] = {}
total = 0.0
for turn in range(120):
    for text in REQUESTS:
        request = json.loads(text)
        chosen = [ITEMS[n] for n in request["items"]]
        answer = {"user": request["user"], "sum": sum(i["price"] for i in chosen), "items": chosen}
        total += len(json.dumps(answer))
        sessions[request["user"]] = pickle.dumps(answer)
        pickle.loads(sessions[request["user"]])
print(round(total))
