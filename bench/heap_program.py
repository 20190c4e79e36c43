"""Holds records (each a dict of a str, an int and a float), and executes commands, one per line.

    beat SECONDS    works through random records and reports its longest pause
    fork HOLD SECONDS  the same, while a child made by a bare fork stops itself and is kept for HOLD seconds
    anything else   is run as Python source, for tools that count from inside the process
"""

import ctypes
import gc
import json
import os
import random
import signal
import sys
import threading
import time

gc.disable()
KEPT = [{"name": f"record {i}", "id": i + 1000, "score": float(i)} for i in range(int(sys.argv[1]))]
gc.enable()
SYS_FORK = 57
RECORDS_A_BEAT = 64
libc = ctypes.CDLL(None, use_errno=True)  # releases the GIL, so the loop continues as far as the kernel lets it


def beat(seconds):
    longest, beats = 0.0, 0
    start = last = time.perf_counter()
    choose, most = random.Random(1).random, len(KEPT)
    while last - start < seconds:
        for _ in range(RECORDS_A_BEAT):
            record = KEPT[int(choose() * most)]
            record["score"] += 1.0
        now = time.perf_counter()
        longest, last, beats = max(longest, now - last), now, beats + 1
    return {"longestMs": longest * 1000, "beats": beats}


def private_bytes():
    with open("/proc/self/smaps_rollup") as rollup:
        return sum(int(line.split()[1]) for line in rollup if line.startswith("Private_Dirty")) * 1024


def fork(hold, seconds, results):
    time.sleep(seconds / 4)
    began = time.perf_counter()
    child = libc.syscall(SYS_FORK)
    if child == 0:
        libc.syscall(62, os.getpid(), signal.SIGSTOP)
        os._exit(0)
    results["forkMs"] = (time.perf_counter() - began) * 1000
    time.sleep(hold)
    results["copiedBytes"] = private_bytes()  # pages written in the meantime are private again
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


print("{}", flush=True)
for line in sys.stdin:
    words = line.split()
    started = time.perf_counter()
    answer = {}
    if words[0] == "beat":
        answer = beat(float(words[1]))
    elif words[0] == "fork":
        thread = threading.Thread(target=fork, args=(float(words[1]), float(words[2]), answer))
        thread.start()
        answer.update(beat(float(words[2])))
        thread.join()
    else:
        try:
            exec(line)
        except ImportError:
            answer = {"missing": True}
    answer["ms"] = (time.perf_counter() - started) * 1000
    print(json.dumps(answer), flush=True)
