"""Starts the service and, in a process of its own, the clients that use it."""

import argparse
import pathlib
import signal
import subprocess
import sys
import threading

from classifier import Classifier
from monitoring import Monitor
from server import ClassificationServer

HERE = pathlib.Path(__file__).parent


def main():
    options = parse_options()
    monitor = Monitor()
    server = ClassificationServer(("127.0.0.1", options.port), Classifier(), monitor)
    threading.Thread(target=server.serve_forever, name="accept", daemon=True).start()
    host, port = server.server_address[:2]
    print(f"serving on http://{host}:{port} for {options.seconds:g} s", flush=True)

    clients = subprocess.Popen(
        [
            sys.executable,
            str(HERE / "clients.py"),
            f"--port={port}",
            f"--seconds={options.seconds}",
            f"--rate={options.rate}",
        ]
    )
    signal.signal(signal.SIGTERM, lambda *_: clients.terminate())
    try:
        failed = clients.wait() not in (0, -signal.SIGTERM)
    except KeyboardInterrupt:
        clients.wait()
        failed = False
    server.shutdown()
    print(monitor.summary(), flush=True)
    return 1 if failed else 0


def parse_options():
    parser = argparse.ArgumentParser(prog="inference_service", description=__doc__)
    parser.add_argument("--seconds", type=float, default=40, help="how long the clients stay")
    parser.add_argument("--rate", type=float, default=250, help="requests per second, all clients")
    parser.add_argument("--port", type=int, default=0, help="0: any free port")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
