"""Three web applications on loopback, each with one route that keeps 100 KB a request, and 300 requests to each."""

import os
import sys
import threading
import time
import urllib.request
from wsgiref.simple_server import WSGIRequestHandler, make_server

import tidemark.traffic as traffic

REQUESTS = 300
kept = []


def keep():
    kept.append(os.urandom(100_000))
    return "kept"


def flask_app():
    from flask import Flask

    app = Flask(__name__)
    app.get("/flask/<int:number>")(lambda number: keep())
    app.wsgi_app = traffic.wsgi(app.wsgi_app)
    return app


def django_app():
    import django
    from django.conf import settings
    from django.core.wsgi import get_wsgi_application
    from django.http import HttpResponse
    from django.urls import path

    settings.configure(ROOT_URLCONF=__name__, ALLOWED_HOSTS=["*"], SECRET_KEY="none", DEBUG=False)
    django.setup()
    global urlpatterns
    urlpatterns = [path("django/<int:number>/", lambda request, number: HttpResponse(keep()))]
    return traffic.wsgi(get_wsgi_application())


def fastapi_app():
    from fastapi import APIRouter, FastAPI

    app = FastAPI()
    router = APIRouter()

    @router.get("/items/{number}")
    async def item(number: int):
        return keep()

    app.include_router(router, prefix="/fastapi")
    app.add_middleware(traffic.asgi)
    return app


class Quiet(WSGIRequestHandler):
    def log_message(self, *words):
        pass


def serve_wsgi(app):
    server = make_server("127.0.0.1", 0, app, handler_class=Quiet)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_port


def serve_asgi(app):
    import uvicorn

    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_level="error"))
    threading.Thread(target=server.run, daemon=True).start()
    while not server.started:
        time.sleep(0.01)
    return server.servers[0].sockets[0].getsockname()[1]


def main():
    ports = {
        "/flask/{}": serve_wsgi(flask_app()),
        "/django/{}/": serve_wsgi(django_app()),
        "/fastapi/items/{}": serve_asgi(fastapi_app()),
    }
    for number in range(REQUESTS):
        for path, port in ports.items():
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path.format(number)}") as answer:
                assert answer.status == 200
    assert len(kept) == REQUESTS * len(ports)


if __name__ == "__main__":
    sys.exit(main())
