"""Copies 4 MiB at a time, larger than the period at which copies are sampled."""

source = bytearray(4 << 20)
for _ in range(800):
    bytes(source)
