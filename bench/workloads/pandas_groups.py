"""Joins, groups and reshapes a table."""

import numpy as np
import pandas as pd

rng = np.random.default_rng(5)
rows = 200_000
orders = pd.DataFrame(
    {
        "customer": rng.integers(0, 5_000, rows),
        "day": rng.integers(0, 365, rows),
        "amount": rng.exponential(20.0, rows),
        "kind": rng.choice(["web", "shop", "phone"], rows),
    }
)
customers = pd.DataFrame({"customer": np.arange(5_000), "region": rng.choice(list("abcdef"), 5_000)})
for _ in range(6):
    joined = orders.merge(customers, on="customer")
    by_region = joined.groupby(["region", "kind"])["amount"].agg(["sum", "mean", "count"])
    daily = joined.pivot_table(index="day", columns="region", values="amount", aggfunc="sum")
    labels = joined["kind"].str.upper() + "-" + joined["region"]
print(by_region.shape, daily.shape, labels.nunique())
