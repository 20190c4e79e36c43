"""A server in its first minute: imports, pools and caches fill, each to its own size."""
import json
import os
import random
import re
import time

SECONDS = float(os.environ.get("LEAKBENCH_SECONDS", 60))
templates = {}
sessions = {}
random.seed(4)


def template(name):
    if name not in templates:
        templates[name] = re.compile(f"({name})|" + "|".join(f"{name}{i}" for i in range(60)))
    return templates[name]


def session(user):
    if user not in sessions:
        sessions[user] = {"user": user, "cart": ["x" * 40 for _ in range(20)]}
    return sessions[user]


def handle():
    user = min(1_500, int(random.expovariate(1 / 300)))
    template(f"page-{user % 40}").match(f"page-{user % 40}")
    return json.dumps(session(user))


end = time.monotonic() + SECONDS
while time.monotonic() < end:
    handle()
    time.sleep(0.002)
