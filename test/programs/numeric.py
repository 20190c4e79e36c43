"""NumPy and pandas: memory that the interpreter's own allocator never sees."""
import os

import numpy
import pandas

from truth import Truth

truth = Truth()
MIB = 1 << 20


def matrix():
    array = numpy.zeros((1024, 1024, 10))  # known: matrix
    array += 1
    truth.site("matrix", matrix, array.nbytes)
    return array


def many_arrays():
    arrays = [None] * 12_000
    for index in range(len(arrays)):
        arrays[index] = numpy.zeros(1000)  # known: many arrays
    truth.site("many arrays", many_arrays, sum(array.nbytes for array in arrays))
    return arrays


def product(array):
    total = 0.0
    for layer in range(10):
        total += float((array[:, :, layer] * 2.0).sum())  # known: temporaries
    truth.site("temporaries", product, 0, 10 * 8 * MIB)
    return total


def frame():
    values = numpy.arange(10_000_000, dtype=numpy.int64)
    table = pandas.DataFrame({"a": values})
    table["b"] = table["a"] * 2  # known: column
    grouped = table.groupby(table["a"] % 7).sum()
    truth.site("column", frame, 10_000_000 * 8, through=True)
    return table, grouped


def main():
    array = matrix()
    kept = [array, many_arrays(), frame()]
    product(array)
    truth.report()
    os._exit(len(kept) - 3)


main()
