"""Each client creates its own TLS context, and a list keeps them: the memory is OpenSSL's."""
import os
import ssl
import time

SECONDS = float(os.environ.get("LEAKBENCH_SECONDS", 32))
contexts = []


def connect():
    context = ssl.create_default_context()
    contexts.append(context)
    return context


end = time.monotonic() + SECONDS
while time.monotonic() < end:
    connect()
    time.sleep(0.1)
