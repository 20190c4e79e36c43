"""Like fastapi_service.py, but requests run inference with a transformer layer: `torch_service.py PORT`."""

import sys

import torch
import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel

app = FastAPI()
torch.manual_seed(0)
torch.set_num_threads(1)
layer = torch.nn.TransformerEncoderLayer(64, 4, 128, batch_first=True).eval()


class Order(BaseModel):
    customer: str
    items: list[int]


@app.post("/orders")
async def orders(order: Order):
    with torch.inference_mode():
        batch = torch.randn(1, len(order.items) + len(order.customer) % 8, 64)
        return {"score": layer(batch).mean().item()}


uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="error")
