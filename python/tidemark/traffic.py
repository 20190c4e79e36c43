"""Middleware that counts a web service's requests, and labels a share of them with their route and request id.

::

    app = tidemark.traffic.asgi(app)     # FastAPI, Starlette, Django and others under ASGI
    app = tidemark.traffic.wsgi(app)     # Flask, Django and others under WSGI

    app.add_middleware(tidemark.traffic.asgi)          # the same, as Starlette and FastAPI write it
    app.wsgi_app = tidemark.traffic.wsgi(app.wsgi_app) # as Flask writes it

All requests are counted, with or without an agent: ``tidemark watch`` reads the number from outside, and the fleet's
diagnosis uses the rate. A request that passes several of these wrappers counts once. Work that is no HTTP request, such as
jobs of a queue, counts by ``tidemark.traffic.count()``.

The environment sets the share with labels: ``TIDEMARK_TRAFFIC=5%``. Without it, or without an agent in the process, requests
pass through unlabelled. The share decides only about labels: the agent samples all allocations and sees all frees, whatever
the share is. ``TIDEMARK_TRAFFIC=off`` leaves the application as it is: nothing is counted or labelled.

A labelled request carries ``endpoint``, its route (``/users/{id}``), and ``request``, its id: the header
``x-request-id``, otherwise the trace id of ``traceparent``, otherwise a number. Each combination of labels stays in
memory until the program ends, so routes are limited to 500 and request ids to 2,000 in a process; further ones are
``other``.
"""

import os
import random
import re
import sys
import warnings
from typing import Any, Awaitable, Callable, Dict, Iterable, Iterator, MutableMapping, Optional, Set

import tidemark

from ._request_count import count

__all__ = ["asgi", "count", "wsgi"]

_VARIABLE = "TIDEMARK_TRAFFIC"
_OFF = "off"
#: In the scope or environ of a request that is counted.
_COUNTED = "tidemark.counted"
_MOST_ROUTES = 500
_MOST_REQUESTS = 2_000
_OTHER = "other"
#: Of a request id; a header could be longer.
_LONGEST_ID = 64
#: Parts of a path that are ids: numbers, UUIDs and other long hexadecimal or mixed words.
_ID = re.compile(r"^(?:\d+|[0-9a-fA-F-]{16,}|(?=[^/]*\d)[\w=-]{20,})$")
#: version-trace-parent-flags, as in the W3C recommendation Trace Context.
_TRACEPARENT = re.compile(r"^[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}")
#: Its own generator: the program's random numbers stay the same.
_random = random.Random()

Scope = MutableMapping[str, Any]
Environ = MutableMapping[str, Any]


class _Known:
    """Texts that may become labels: at most so many different ones."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._texts: Set[str] = set()

    def limited(self, text: str) -> str:
        if text in self._texts:
            return text
        if len(self._texts) >= self._most:
            return _OTHER
        self._texts.add(text)
        return text


_routes = _Known(_MOST_ROUTES)
_requests = _Known(_MOST_REQUESTS)
_number = 0


def _share_of(text: str) -> float:
    """``5%``, ``0.05`` -> 0.05; 0 and a warning for anything else."""
    written = text.strip()
    if not written:
        return 0.0
    try:
        share = float(written[:-1]) / 100 if written.endswith("%") else float(written)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        warnings.warn(f"{_VARIABLE}={text!r} is not a share such as 5%: no request is labelled", stacklevel=4)
        return 0.0
    return share


def _is_off() -> bool:
    return os.environ.get(_VARIABLE, "").strip() == _OFF


def _count(request: MutableMapping[str, Any]) -> None:
    if _COUNTED not in request:
        request[_COUNTED] = True
        count()


def _is_chosen(share: float) -> bool:
    return share > 0 and tidemark._agent is not None and _random.random() < share


def _label(route: str, request_id: Optional[str], traceparent: Optional[str]) -> Any:
    global _number
    if not request_id:
        traced = _TRACEPARENT.match(traceparent or "")
        if traced is None:
            _number += 1
        request_id = str(_number) if traced is None else traced.group(1)
    return tidemark.label(
        endpoint=_routes.limited(route), request=_requests.limited(request_id[:_LONGEST_ID])
    )


def _shape(path: str) -> str:
    """The path with ``{}`` for ids: the route where the framework does not say it."""
    return "/".join("{}" if _ID.match(part) else part for part in path.split("/")) or "/"


class asgi:
    """An ASGI application around another one; with ``TIDEMARK_TRAFFIC=off``, that other one."""

    def __new__(cls, app: Callable[..., Awaitable[None]]) -> Any:
        return app if _is_off() else super().__new__(cls)

    def __init__(self, app: Callable[..., Awaitable[None]]) -> None:
        self.app = app
        self._share = _share_of(os.environ.get(_VARIABLE, ""))

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        if scope.get("type") not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        _count(scope)
        if not _is_chosen(self._share):
            await self.app(scope, receive, send)
            return
        headers = {name: value for name, value in scope.get("headers") or ()}

        def header(name: bytes) -> str:
            return str(headers.get(name, b""), "latin-1")

        route = _route_in_scope(scope, self.app)
        async with _label(route, header(b"x-request-id"), header(b"traceparent")):
            await self.app(scope, receive, send)
        _learn(scope, str(scope.get("path") or "/"), route)


def _route_in_scope(scope: Scope, app: Any) -> str:
    path = str(scope.get("path") or "/")
    try:
        known = _learned.get(_shape(path))
        return known or _starlette_route(scope, scope.get("app") or app) or _django_route(path) or _shape(path)
    except Exception:  # the framework's own matters, which it will meet again itself
        return _shape(path)


#: Shape of a path -> route, where only the framework's own answer to an earlier request says it.
_learned: Dict[str, str] = {}


def _learn(scope: Scope, path: str, route: str) -> None:
    """FastAPI leaves the route that it chose in the request: the next one of this shape is labelled with it."""
    chosen = getattr(scope.get("route"), "path", None)
    whole = _whole_route(chosen, path) if isinstance(chosen, str) else None
    if whole is not None and whole != route and len(_learned) < _MOST_ROUTES:
        _learned[_shape(path)] = whole


def _whole_route(route: str, path: str) -> Optional[str]:
    """The route with the prefix of its router, which the route itself does not know; None if they do not match."""
    parts, last = path.split("/"), route.split("/")[1:]
    before, end = parts[: len(parts) - len(last)], parts[len(parts) - len(last) :]
    if len(parts) <= len(last) or any("{" not in name and name != part for name, part in zip(last, end)):
        return None
    return _shape("/".join(before)).rstrip("/") + route


def _starlette_route(scope: Scope, app: Any) -> Optional[str]:
    """The path of the first route that matches the request, as Starlette's router looks for it."""
    for route in getattr(app, "routes", None) or ():
        match, child = route.matches(scope)
        if getattr(match, "name", "") == "FULL":
            path = str(getattr(route, "path", ""))
            if getattr(route, "routes", None):
                inner = _starlette_route({**scope, **child}, route)
                return None if inner is None else path + inner
            return path or None
    return None


def _django_route(path: str) -> Optional[str]:
    urls = sys.modules.get("django.urls")
    settings = getattr(sys.modules.get("django.conf"), "settings", None)
    if urls is None or not getattr(settings, "configured", False):
        return None
    return "/" + str(urls.resolve(path).route)  # type: ignore[attr-defined]


class wsgi:
    """A WSGI application around another one; with ``TIDEMARK_TRAFFIC=off``, that other one."""

    def __new__(cls, app: Callable[..., Iterable[bytes]]) -> Any:
        return app if _is_off() else super().__new__(cls)

    def __init__(self, app: Callable[..., Iterable[bytes]]) -> None:
        self.app = app
        self._share = _share_of(os.environ.get(_VARIABLE, ""))

    def __call__(self, environ: Environ, start_response: Any) -> Iterable[bytes]:
        _count(environ)
        if not _is_chosen(self._share):
            return self.app(environ, start_response)
        label = _label(
            _route_in_environ(environ, self.app),
            environ.get("HTTP_X_REQUEST_ID"),
            environ.get("HTTP_TRACEPARENT"),
        )
        with label:
            body = self.app(environ, start_response)
        return body if isinstance(body, (list, tuple, bytes)) else _LabelledBody(body, label)


class _LabelledBody:
    """A response that is made while it is sent: the label holds during each step, not between them."""

    def __init__(self, body: Iterable[bytes], label: Any) -> None:
        self._body = body
        self._label = label
        self._iterator: Optional[Iterator[bytes]] = None

    def __iter__(self) -> "_LabelledBody":
        return self

    def __next__(self) -> bytes:
        with self._label:
            if self._iterator is None:
                self._iterator = iter(self._body)
            return next(self._iterator)

    def close(self) -> None:
        close = getattr(self._body, "close", None)
        if close is not None:
            with self._label:
                close()


def _route_in_environ(environ: Environ, app: Any) -> str:
    path = str(environ.get("PATH_INFO") or "/")
    try:
        return _flask_route(environ, app) or _django_route(path) or _shape(path)
    except Exception:  # the framework's own matters, which it will meet again itself
        return _shape(path)


def _flask_route(environ: Environ, app: Any) -> Optional[str]:
    """The rule that matches the request; of ``app.wsgi_app``, whose application is its owner."""
    flask = getattr(app, "__self__", app)
    rules = getattr(flask, "url_map", None)
    if rules is None:
        return None
    rule, _ = rules.bind_to_environ(environ).match(return_rule=True)
    return str(rule.rule)
