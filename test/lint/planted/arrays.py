"""Arrays: views, joins, compiled functions."""
import jax
import numpy as np
import pandas as pd
import torch
from flask import Flask

app = Flask(__name__)
previews = {}


class Store:
    def __init__(self, path):
        data = np.fromfile(path, dtype=np.float32)
        self.head = data[:100]  # leak: TM-L035


def preview(name, image: np.ndarray):
    previews[name] = image[::8, :10]  # leak: TM-L035


def frames(files):
    df = None
    for f in files:
        part = pd.read_csv(f)
        df = part if df is None else pd.concat([df, part], ignore_index=True)  # leak: TM-L036
    return df


def stack(rows):
    out = np.array([])
    for row in rows:
        out = np.append(out, row)  # leak: TM-L036
    return out


def table(records):
    result = pd.DataFrame()
    for record in records:
        result = result.append(record, ignore_index=True)  # leak: TM-L036
    return result


@app.route("/score")
def score():
    fn = jax.jit(lambda x: x * 2)  # leak: TM-L043
    return fn(1)


def handle_request(req):
    model = torch.compile(net)  # leak: TM-L043
    return model(req.x)  # leak: TM-L015
