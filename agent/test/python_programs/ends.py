"""Exits normally while holding memory that the interpreter's teardown frees."""

import mmap


def held():
    return bytes(300_000_000 - bytes().__sizeof__()), [bytes(100) for _ in range(100_000)]


def dropped():
    return bytes(310_000_000 - bytes().__sizeof__())


def mapped():
    return mmap.mmap(-1, 409_600_000)


class Holder:
    def __init__(self):
        self.held = held(), mapped()


dropped()
mapped().close()
holder = Holder()
