"""A closed loop of requests over one persistent connection: `load.py PORT REQUESTS`. Prints the latency's
p50 and p99 in ms as JSON. The first tenth is warm-up and left out."""

import http.client
import json
import sys
import time

port, requests = int(sys.argv[1]), int(sys.argv[2])
body = json.dumps({"customer": "customer 7", "items": list(range(40))})
deadline = time.monotonic() + 60
while True:
    try:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        connection.connect()
        break
    except OSError:
        if time.monotonic() > deadline:
            raise
        time.sleep(0.05)
latencies = []
for _ in range(requests):
    started = time.perf_counter()
    connection.request("POST", "/orders", body, {"Content-Type": "application/json"})
    response = connection.getresponse()
    response.read()
    assert response.status == 200, response.status
    latencies.append((time.perf_counter() - started) * 1000)
counted = sorted(latencies[requests // 10 :])
print(json.dumps({"p50Ms": counted[len(counted) // 2], "p99Ms": counted[int(len(counted) * 0.99)]}))
