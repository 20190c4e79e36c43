"""A module of a package that is run as a program."""


def fill(count):
    slots = [None] * count
    for index in range(count):
        slots[index] = bytes(1 << 20)
    return slots
