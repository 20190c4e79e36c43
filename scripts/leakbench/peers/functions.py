"""Prints the functions of a source file as JSON, outer before inner: [[NAME, FIRST_LINE, LAST_LINE], ...]."""
import ast
import json
import sys

with open(sys.argv[1], "rb") as source:
    tree = ast.parse(source.read())
functions = [
    (node.name, node.lineno, node.end_lineno)
    for node in ast.walk(tree)
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
]
print(json.dumps(sorted(functions, key=lambda row: (row[1], -row[2]))))
