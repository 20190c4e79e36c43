"""A closed loop of requests over one persistent connection until standard input ends: `load_until.py PORT`.
Prints the number of requests and of failures, and the latency's p50, p99 and maximum in ms, as JSON."""

import http.client
import json
import sys
import threading
import time

port = int(sys.argv[1])
body = json.dumps({"customer": "customer 7", "items": list(range(40))})
ended = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()


def connect():
    deadline = time.monotonic() + 60
    while True:
        try:
            made = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
            made.connect()
            return made
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


connection = connect()
print("up", flush=True)
latencies, failed = [], 0
while not ended.is_set():
    started = time.perf_counter()
    try:
        connection.request("POST", "/orders", body, {"Content-Type": "application/json"})
        response = connection.getresponse()
        response.read()
        failed += response.status != 200
    except (OSError, http.client.HTTPException):
        failed += 1
        connection.close()
        connection = connect()
    latencies.append((time.perf_counter() - started) * 1000)
    time.sleep(0.001)  # leaves CPU time for the service and its twin
latencies.sort()
at = lambda share: latencies[min(len(latencies) - 1, int(len(latencies) * share))]
print(json.dumps({"requests": len(latencies), "failed": failed, "p50Ms": at(0.5), "p99Ms": at(0.99), "maxMs": latencies[-1]}))
