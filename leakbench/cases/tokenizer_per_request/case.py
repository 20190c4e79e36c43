"""A tokenizer is built for each request, and a debug table keeps the request's context."""
import os
import re
import time

SECONDS = float(os.environ.get("LEAKBENCH_SECONDS", 30))
contexts = {}


class Tokenizer:
    def __init__(self, size):
        self.vocabulary = {f"token{i}": i for i in range(size)}
        self.pattern = re.compile(r"[a-z]+[0-9]*")

    def encode(self, text):
        return [self.vocabulary.get(word, 0) for word in self.pattern.findall(text)]


def answer(number):
    tokenizer = Tokenizer(4000)
    identifiers = tokenizer.encode(f"token{number} token17 token9999")
    contexts[number] = (tokenizer, identifiers)
    return identifiers


end = time.monotonic() + SECONDS
number = 0
while time.monotonic() < end:
    answer(number)
    number += 1
    time.sleep(0.25)
