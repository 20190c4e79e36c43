"""A health check opens a connection each time and keeps it."""
import os
import socket
import time

SECONDS = float(os.environ.get("LEAKBENCH_SECONDS", 30))
connections = []


def check():
    near, far = socket.socketpair()
    near.sendall(b"ping")
    connections.append((near, far, far.recv(4)))


end = time.monotonic() + SECONDS
while time.monotonic() < end and len(connections) < 450:
    check()
    time.sleep(0.08)
