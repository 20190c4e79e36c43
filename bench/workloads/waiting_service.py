"""A service that mostly waits: 20 requests a second, each handled in well under a millisecond. It leaks.

waiting_service.py BYTES SECONDS: a request keeps BYTES and some small objects. Prints as JSON what was
kept in `remember` and the CPU time it took.
"""

import json
import os
import sys
import time

BODY, SECONDS = int(sys.argv[1]), float(sys.argv[2])
leaked = []


def remember(request):
    leaked.append((bytes(BODY), [b"%0100d" % (request + number) for number in range(20)]))


def handle(request):
    document = json.dumps({"values": list(range(300)), "request": request})
    json.loads(document)
    remember(request)


end = time.monotonic() + SECONDS
requests = 0
while time.monotonic() < end:
    handle(requests)
    requests += 1
    time.sleep(0.05)
kept = sum(sys.getsizeof(body) + sum(map(sys.getsizeof, tags)) for body, tags in leaked)
print(json.dumps({"keptBytes": kept, "cpuSeconds": time.process_time()}), flush=True)
os._exit(0)
