"""Claim: pandas needs several times the size of the data. Claim: inplace=True saves memory."""

import tracemalloc

from figures import conclude, need, show

pandas = need("pandas")
numpy = need("numpy")


def extra(operation):
    """The peak above a frame of 61 MiB, in sizes of the frame. NumPy reports its arrays to tracemalloc."""
    tracemalloc.start()
    data = pandas.DataFrame({name: numpy.arange(1_000_000.0) for name in "abcdefgh"})
    before, _ = tracemalloc.get_traced_memory()
    tracemalloc.reset_peak()
    size = data.memory_usage(index=False).sum()
    kept = operation(data)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    del kept
    return (peak - before) / size


def sort(data, **options):
    return data.sort_values("a", ascending=False, **options)


print(f"pandas {pandas.__version__}; memory at the peak beside the frame, in sizes of the frame")
column = extra(lambda data: data["a"])
show("df['a'], one column", f"{column:.2f}")
everything = extra(lambda data: data[data["a"] >= 0])
show("df[df['a'] >= 0], all rows", f"{everything:.2f}")
joined = extra(lambda data: pandas.concat([data, data]))
show("pandas.concat([df, df])", f"{joined:.2f}")
renamed = extra(lambda data: data.rename(columns={"a": "z"}))
show("df.rename(columns={'a': 'z'})", f"{renamed:.2f}")
show("df.sort_values('a', ascending=False)", f"{extra(sort):.2f}")
sorted_in_place = extra(lambda data: sort(data, inplace=True))
show("df.sort_values('a', ascending=False, inplace=True)", f"{sorted_in_place:.2f}")
show("df.fillna(0)", f"{extra(lambda data: data.fillna(0)):.2f}")
filled_in_place = extra(lambda data: data.fillna(0, inplace=True))
show("df.fillna(0, inplace=True)", f"{filled_in_place:.2f}")
conclude(
    column < 0.05
    and everything > 0.9
    and joined > 1.9
    and sorted_in_place > 0.9
    and filled_in_place < 0.5,
    "selecting a column copies nothing, most operations copy; inplace=True avoids it in fillna, not in sort_values",
)
