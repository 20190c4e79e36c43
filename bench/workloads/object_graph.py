"""Builds, walks and drops trees of small objects, as a compiler or a simulation does."""


class Node:
    def __init__(self, key, left, right):
        self.key = key
        self.left = left
        self.right = right


def build(depth, key=1):
    if depth == 0:
        return Node(key, None, None)
    return Node(key, build(depth - 1, key * 2), build(depth - 1, key * 2 + 1))


def check(node):
    return 1 if node.left is None else 1 + check(node.left) + check(node.right)


keep = build(16)
total = sum(check(build(13)) for _ in range(150))
print(total, check(keep))
