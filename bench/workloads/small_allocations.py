"""The worst case: only creates and drops small objects."""

total = 0
for turn in range(40):
    kept = []
    for n in range(60_000):
        kept.append((n, [n], {"n": n}))
    total += len(kept)
    texts = [str(n) * 3 for n in range(60_000)]
    total += len(texts)
print(total)
