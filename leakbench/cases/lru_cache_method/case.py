"""An unbounded lru_cache on a method keeps every Session, and all that it computed, forever."""
import functools
import os
import time

SECONDS = float(os.environ.get("LEAKBENCH_SECONDS", 32))


class Session:
    def __init__(self, user):
        self.user = user
        self.state = {f"key{i}": f"{user}-{i}" for i in range(40)}

    @functools.lru_cache(maxsize=None)
    def permissions(self, scope):
        return tuple(f"{scope}:{self.user}:{i}" for i in range(60))


def serve(user):
    session = Session(f"user{user}")
    return len(session.permissions("read")) + len(session.permissions("write"))


end = time.monotonic() + SECONDS
user = 0
while time.monotonic() < end:
    serve(user)
    user += 1
    time.sleep(0.012)
