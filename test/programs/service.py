"""A small HTTP service that never removes anything: every order stays in a dictionary."""
import os
import sys

from fastapi import FastAPI

from truth import Truth

application = FastAPI()
orders = {}
truth = Truth()


def remember(number):
    orders[number] = bytes(100_000)  # known: orders


@application.get("/order/{number}")
async def order(number: int):
    remember(number)
    return {"orders": len(orders)}


@application.get("/truth")
def tell():
    truth.site("orders", remember, sum(map(sys.getsizeof, orders.values())))
    truth.report()
    return {"pid": os.getpid()}


if __name__ == "__main__":
    import uvicorn

    uvicorn.run(application, host="127.0.0.1", port=0, log_level="info")
