"""A text index: splits and normalizes strings, keeps them in dictionaries of sets, and queries them."""

import random

random.seed(3)
VOCABULARY = ["".join(random.choices("abcdefghijklmnopqrstuvwxyz", k=random.randrange(3, 11))) for _ in range(20_000)]
documents = [" ".join(random.choices(VOCABULARY, k=120)).title() for _ in range(12_000)]
index: dict[str, set[int]] = {}
for number, text in enumerate(documents):
    for word in text.lower().split():
        index.setdefault(word, set()).add(number)
hits = 0
for _ in range(300_000):
    first, second = random.choice(VOCABULARY), random.choice(VOCABULARY)
    hits += len(index.get(first, set()) & index.get(second, set()))
print(len(index), hits)
