"""Clients of the service: each sends one document after another over one connection."""

import argparse
import http.client
import json
import random
import sys
import threading
import time

CLIENTS = 4
WORDS_IN_LANGUAGE = 20_000
WORDS_IN_DOCUMENT = 60


def main():
    options = parse_options()
    chance = random.Random(options.port)
    language = ["".join(chance.choices("abcdefghijklmnop", k=chance.randint(3, 10)))
                for _ in range(WORDS_IN_LANGUAGE)]
    failures = []
    clients = [
        threading.Thread(target=run_client, args=(number, options, language, failures))
        for number in range(CLIENTS)
    ]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    for failure in failures:
        print(f"client: {failure}", file=sys.stderr)
    return 1 if failures else 0


def run_client(number, options, language, failures):
    chance = random.Random(number)
    connection = http.client.HTTPConnection("127.0.0.1", options.port, timeout=10)
    pause = CLIENTS / options.rate
    begun = due = time.monotonic()
    sent = 0
    try:
        while due < begun + options.seconds:
            time.sleep(max(0.0, due - time.monotonic()))
            due = max(due + pause, time.monotonic())
            sent += 1
            send_document(connection, f"{number}-{sent:07d}", chance, language)
    except (OSError, http.client.HTTPException, ValueError) as error:
        failures.append(f"{type(error).__name__}: {error}")
    finally:
        connection.close()


def send_document(connection, document, chance, language):
    text = " ".join(chance.choices(language, k=WORDS_IN_DOCUMENT))
    body = json.dumps({"document": document, "text": text})
    connection.request("POST", "/classify", body, {"Content-Type": "application/json"})
    response = connection.getresponse()
    answer = json.loads(response.read())
    if response.status != 200 or answer.get("document") != document:
        raise ValueError(f"unexpected answer {response.status}: {answer}")


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--rate", type=float, required=True)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
