"""A web service: validates a JSON body, processes it, returns JSON. `fastapi_service.py PORT`."""

import sys

import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel

app = FastAPI()
recent: list[dict] = []


class Order(BaseModel):
    customer: str
    items: list[int]


@app.post("/orders")
async def orders(order: Order):
    lines = [{"item": item, "price": item * 1.25, "note": f"item {item} of {order.customer}"} for item in order.items]
    recent.append({"customer": order.customer, "total": sum(line["price"] for line in lines)})
    del recent[:-500]
    return {"lines": lines, "recent": len(recent)}


uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="error")
