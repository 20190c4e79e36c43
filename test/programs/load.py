"""Sends REQUESTS orders to the service at PORT over persistent connections, then asks for its true figures."""
import http.client
import sys
import threading


def send(port, numbers):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    for number in numbers:
        connection.request("GET", f"/order/{number}")
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 200, answer.status
    connection.close()


def main():
    port, requests = int(sys.argv[1]), int(sys.argv[2])
    clients = [
        threading.Thread(target=send, args=(port, range(first, requests, 4))) for first in range(4)
    ]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", "/truth")
    connection.getresponse().read()


main()
