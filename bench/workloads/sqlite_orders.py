"""Fills an in-memory SQL database and queries it through row objects."""

import sqlite3

connection = sqlite3.connect(":memory:")
connection.row_factory = sqlite3.Row
connection.execute("create table orders (id integer primary key, customer text, amount real, note text)")
for start in range(0, 120_000, 1_000):
    connection.executemany(
        "insert into orders (customer, amount, note) values (?, ?, ?)",
        [(f"customer {n % 900}", n * 0.5, f"order number {n} placed online") for n in range(start, start + 1_000)],
    )
total = 0.0
for _ in range(12):
    for row in connection.execute("select customer, amount, note from orders order by customer"):
        total += row["amount"] + len(row["note"])
print(round(total))
