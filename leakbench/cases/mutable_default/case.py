"""A parser keeps every word it has seen in a mutable default argument, which all calls share."""
import os
import time

SECONDS = float(os.environ.get("LEAKBENCH_SECONDS", 28))


class Parser:
    def tokens(self, text, known={}):
        for word in text.split():
            if word not in known:
                known[word] = [word, word.upper(), len(word) * [word + "!"]]
        return [known[word] for word in text.split()]


parser = Parser()
end = time.monotonic() + SECONDS
number = 0
while time.monotonic() < end:
    parser.tokens(" ".join(f"word{number}x{i}" for i in range(12)))
    number += 1
    time.sleep(0.004)
