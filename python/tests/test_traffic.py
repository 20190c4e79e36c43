"""Requests are counted, and labelled in the share that the environment asks for, whatever the framework, and are otherwise unchanged.

Frameworks themselves are tested with real servers (test/real/traffic.test.ts).
"""

import asyncio
import io
import os
import random
import threading
import unittest
import warnings
from unittest import mock
from wsgiref.validate import validator

import tidemark
from tidemark import _request_count, traffic

if tidemark._agent:
    from tidemark import _agent


def in_force():
    text = _agent._labels.get() if tidemark._agent else ""
    return dict(pair.split("\x1f") for pair in text.split("\x1e")) if text else {}


def with_share(text):
    return mock.patch.dict(os.environ, {"TIDEMARK_TRAFFIC": text})


def environ(path="/users/42", **more):
    return {
        "REQUEST_METHOD": "GET",
        "SCRIPT_NAME": "",
        "PATH_INFO": path,
        "QUERY_STRING": "",
        "SERVER_NAME": "127.0.0.1",
        "SERVER_PORT": "80",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "http",
        "wsgi.input": io.BytesIO(),
        "wsgi.errors": io.StringIO(),
        "wsgi.multithread": False,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
        **more,
    }


class Shares(unittest.TestCase):
    def test_as_people_write_them(self):
        for text, share in (("5%", 0.05), (" 100% ", 1), ("0.25", 0.25), ("0", 0), ("", 0), ("2.5%", 0.025)):
            with self.subTest(text):
                self.assertAlmostEqual(traffic._share_of(text), share)

    def test_anything_else_is_none_with_a_warning(self):
        for text in ("many", "5", "-1%", "101%", "%", "nan", "inf"):
            with self.subTest(text), warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                self.assertEqual(traffic._share_of(text), 0)
                self.assertEqual(len(caught), 1)

    def test_the_programs_random_numbers_stay_the_same(self):
        random.seed(1)
        expected = random.random()
        random.seed(1)
        with with_share("50%"):
            app = traffic.wsgi(lambda environ, start: [b"x"])
        for _ in range(50):
            app({"PATH_INFO": "/"}, None)
        self.assertEqual(random.random(), expected)


class Shapes(unittest.TestCase):
    def test_ids_in_a_path_are_left_out(self):
        for path, shape in (
            ("/users/42", "/users/{}"),
            ("/users/42/orders/7", "/users/{}/orders/{}"),
            ("/files/0b8f1a52-7a53-4a6e-9d7e-2f4c0f8f5b11", "/files/{}"),
            ("/v1/search", "/v1/search"),
            ("/", "/"),
            ("", "/"),
        ):
            with self.subTest(path):
                self.assertEqual(traffic._shape(path), shape)

    def test_a_route_gets_the_prefix_of_its_router(self):
        for route, path, whole in (
            ("/items/{i}", "/api/items/5", "/api/items/{i}"),
            ("/items/{i}", "/items/5", "/items/{i}"),
            ("/items/{i}", "/v1/7/items/5", "/v1/{}/items/{i}"),
            ("/", "/", "/"),
            ("/files/{p:path}", "/files/a/b", None),
            ("/items/{i}", "/5", None),
        ):
            with self.subTest(path):
                self.assertEqual(traffic._whole_route(route, path), whole)

    def test_more_than_the_limit_become_other(self):
        known = traffic._Known(2)
        self.assertEqual([known.limited(text) for text in "abcab"], ["a", "b", "other", "a", "b"])


def counted():
    return _request_count._page[_request_count._REQUESTS]


async def nothing(scope, receive, send):
    pass


@unittest.skipUnless(_request_count._page, "no memory with a name")
class Counts(unittest.TestCase):
    def setUp(self):
        self.before = counted()

    def new(self):
        return counted() - self.before

    def test_every_request_of_wsgi(self):
        app = traffic.wsgi(lambda environ, start: [])
        for _ in range(3):
            app(environ(), None)
        self.assertEqual(self.new(), 3)

    def test_requests_and_websockets_of_asgi(self):
        app = traffic.asgi(nothing)
        for kind in ("http", "websocket", "lifespan", "http"):
            asyncio.run(app({"type": kind}, None, None))
        self.assertEqual(self.new(), 3)

    def test_a_request_that_passes_two_wrappers_once(self):
        traffic.wsgi(traffic.wsgi(lambda environ, start: []))(environ(), None)
        asyncio.run(traffic.asgi(traffic.asgi(nothing))({"type": "http"}, None, None))
        self.assertEqual(self.new(), 2)

    def test_a_request_that_fails(self):
        def fail(environ, start):
            raise KeyError

        with self.assertRaises(KeyError):
            traffic.wsgi(fail)(environ(), None)
        self.assertEqual(self.new(), 1)

    def test_other_work_by_a_call(self):
        traffic.count()
        self.assertEqual(self.new(), 1)

    def test_exactly_over_threads(self):
        def work():
            for _ in range(20_000):
                traffic.count()

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(self.new(), 160_000)

    def test_exactly_over_tasks(self):
        async def slow(scope, receive, send):
            await asyncio.sleep(0)

        app = traffic.asgi(slow)

        async def main():
            await asyncio.gather(*(app({"type": "http"}, None, None) for _ in range(500)))

        asyncio.run(main())
        self.assertEqual(self.new(), 500)

    def test_a_forked_child_counts_its_own(self):
        traffic.count()
        out, into = os.pipe()
        holding, stop = threading.Event(), threading.Event()

        def count_on():
            while not stop.is_set():
                traffic.count()
                holding.set()

        # It may hold the lock at the fork.
        other = threading.Thread(target=count_on)
        other.start()
        holding.wait()
        try:
            with warnings.catch_warnings():
                # Since 3.12, Python warns about a fork while other threads run.
                warnings.simplefilter("ignore")
                child = os.fork()
            if child == 0:
                traffic.count()
                is_own = _request_count._page[_request_count._PID] == os.getpid()
                os.write(into, b"%d %d" % (counted(), is_own))
                os._exit(0)
            os.close(into)
        finally:
            stop.set()
            other.join()
        parents = counted()
        self.assertEqual(os.read(out, 100), b"1 1")
        os.close(out)
        os.waitpid(child, 0)
        self.assertEqual(counted(), parents)

    def test_nothing_where_it_is_off(self):
        def app(environ, start):
            return []

        with with_share("off"):
            self.assertIs(traffic.wsgi(app), app)
            self.assertIs(traffic.asgi(nothing), nothing)

    def test_nothing_where_the_system_has_no_such_memory(self):
        with mock.patch.object(os, "memfd_create", side_effect=OSError):
            self.assertIsNone(_request_count._map())


class Wsgi(unittest.TestCase):
    def serve(self, app, **more):
        with with_share("100%"):
            wrapped = traffic.wsgi(app)
        body = wrapped(environ(**more), lambda status, headers, *error: None)
        try:
            return list(body)
        finally:
            getattr(body, "close", lambda: None)()

    def test_keeps_to_the_protocol(self):
        def app(environ, start_response):
            start_response("200 OK", [("Content-Type", "text/plain")])
            return iter([b"a", b"b"])

        with with_share("100%"):
            wrapped = validator(traffic.wsgi(validator(app)))
        body = wrapped(environ(), lambda status, headers, error=None: lambda data: None)
        self.assertEqual(list(body), [b"a", b"b"])
        body.close()

    def test_errors_pass(self):
        def app(environ, start_response):
            raise KeyError("x")

        with self.assertRaises(KeyError):
            self.serve(app)
        self.assertEqual(in_force(), {})

    @unittest.skipUnless(tidemark._agent, "no agent is preloaded")
    def test_labels_hold_in_the_application_and_in_each_step_of_its_body(self):
        seen = []

        def app(environ, start_response):
            seen.append(in_force())

            def body():
                seen.append(in_force())
                yield b"a"
                seen.append(in_force())

            return body()

        with with_share("100%"):
            wrapped = traffic.wsgi(app)
        body = wrapped(environ(HTTP_X_REQUEST_ID="r1"), None)
        self.assertEqual(next(body), b"a")
        self.assertEqual(in_force(), {})
        self.assertEqual(list(body), [])
        body.close()
        self.assertEqual(seen, [{"endpoint": "/users/{}", "request": "r1"}] * 3)

    @unittest.skipUnless(tidemark._agent, "no agent is preloaded")
    def test_the_id_is_that_of_the_trace_or_a_number(self):
        ids = []

        def app(environ, start_response):
            ids.append(in_force().get("request"))
            return []

        self.serve(app, HTTP_TRACEPARENT=f"00-{'a' * 32}-{'b' * 16}-01")
        self.serve(app, HTTP_TRACEPARENT="nonsense")
        self.serve(app, HTTP_X_REQUEST_ID="x" * 500)
        self.assertEqual(ids[0], "a" * 32)
        self.assertTrue(ids[1].isdigit())
        self.assertEqual(ids[2], "x" * 64)

    @unittest.skipUnless(tidemark._agent, "no agent is preloaded")
    def test_the_share_is_what_was_asked_for(self):
        labelled = 0

        def app(environ, start_response):
            nonlocal labelled
            labelled += bool(in_force())
            return []

        with with_share("20%"):
            wrapped = traffic.wsgi(app)
        for _ in range(5000):
            wrapped({"PATH_INFO": "/"}, None)
        self.assertTrue(850 < labelled < 1150, labelled)


class Asgi(unittest.TestCase):
    def serve(self, scope, app):
        with with_share("100%"):
            wrapped = traffic.asgi(app)
        return asyncio.run(wrapped(scope, None, None))

    def test_other_messages_pass_unlabelled(self):
        seen = []

        async def app(scope, receive, send):
            seen.append((scope["type"], in_force()))

        self.serve({"type": "lifespan"}, app)
        self.assertEqual(seen, [("lifespan", {})])

    def test_errors_pass(self):
        async def app(scope, receive, send):
            raise KeyError("x")

        with self.assertRaises(KeyError):
            self.serve({"type": "http", "path": "/", "headers": []}, app)

    @unittest.skipUnless(tidemark._agent, "no agent is preloaded")
    def test_two_requests_at_once_have_labels_of_their_own(self):
        seen = {}

        async def app(scope, receive, send):
            before = in_force()
            await asyncio.sleep(0.01)
            seen[scope["path"]] = (before, in_force())

        with with_share("100%"):
            wrapped = traffic.asgi(app)

        async def main():
            await asyncio.gather(*(
                wrapped({"type": "http", "path": path, "headers": [(b"x-request-id", name)]}, None, None)
                for path, name in (("/a", b"1"), ("/b", b"2"))
            ))

        asyncio.run(main())
        for path, name in (("/a", "1"), ("/b", "2")):
            expected = {"endpoint": path, "request": name}
            self.assertEqual(seen[path], (expected, expected))

    @unittest.skipUnless(tidemark._agent, "no agent is preloaded")
    def test_a_framework_whose_routes_fail_is_served_by_its_path(self):
        class Broken:
            @property
            def routes(self):
                raise RuntimeError

            async def __call__(self, scope, receive, send):
                self.seen = in_force()

        app = Broken()
        self.serve({"type": "http", "path": "/x/7", "headers": [(b"x-request-id", b"1")]}, app)
        self.assertEqual(app.seen, {"endpoint": "/x/{}", "request": "1"})


if __name__ == "__main__":
    unittest.main()
