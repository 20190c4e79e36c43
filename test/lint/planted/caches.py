"""Caches that keep instances, coroutines and large values."""
import functools
from functools import cache as memo, lru_cache

import cachetools
import numpy as np
import torch
from aiocache import cached
from async_lru import alru_cache


class Invoice:
    def __init__(self, rows):
        self.rows = rows

    @lru_cache
    def total(self):  # leak: TM-L007
        return sum(r.amount for r in self.rows)

    @functools.lru_cache(maxsize=None)
    def tax(self, country: str) -> float:  # leak: TM-L007
        return self.total() * RATES[country]

    @memo
    def lines(self):  # leak: TM-L007
        return list(self.rows)

    @property
    @functools.cache
    def title(self):  # leak: TM-L007
        return self.rows[0].title

    @alru_cache(maxsize=None)
    async def remote(self):  # leak: TM-L008
        return await fetch(self)

    @functools.lru_cache(maxsize=32)
    async def broken(self, key):  # leak: TM-L008
        return await fetch(key)


@memo
async def load_profile(user_id: int):  # leak: TM-L008
    return await fetch(user_id)


@alru_cache(maxsize=None)
async def geocode(address):  # leak: TM-L008
    return await fetch(address)


@functools.lru_cache(maxsize=None)
def normalize(image: np.ndarray) -> np.ndarray:  # leak: TM-L009
    return image / 255.0


@functools.cache
def encode(text: str) -> torch.Tensor:  # leak: TM-L009
    return model.encode(text)


@lru_cache(maxsize=100_000)
def is_allowed(request):  # leak: TM-L009
    return request.user.is_staff


@memo
def render(user_id, locale):  # leak: TM-L009
    return template.render(user=user_id)


@cachetools.cached(cache={})
def lookup(query: str):  # leak: TM-L009
    return search(query)
