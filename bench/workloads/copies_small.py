"""Copies a few hundred bytes at a time, which is hardly more than the call of memcpy itself."""

source = bytes(300)
parts = [source] * 2000
for _ in range(1500):
    b"".join(parts)
    bytearray(source) + source
