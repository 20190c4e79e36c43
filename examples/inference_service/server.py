"""POST /classify with {"document": ID, "text": TEXT}; GET /statistics."""

import http.server
import json
import time

LARGEST_BODY = 1 << 20


class ClassificationServer(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, address, classifier, monitor):
        super().__init__(address, RequestHandler)
        self.classifier = classifier
        self.monitor = monitor


class RequestHandler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self):
        if self.path != "/statistics":
            return self.answer(404, {"error": "no such path"})
        self.answer(200, {"statistics": self.server.monitor.summary()})

    def do_POST(self):
        if self.path != "/classify":
            return self.answer(404, {"error": "no such path"})
        begun = time.perf_counter()
        request = self.read_request()
        if request is None:
            return self.answer(400, {"error": "a JSON object with document and text is needed"})
        terms, probabilities = self.server.classifier.classify(request["text"])
        self.answer(200, {"document": request["document"], "probabilities": probabilities})
        seconds = time.perf_counter() - begun
        self.server.monitor.record(request["document"], terms, probabilities, seconds)

    def read_request(self):
        """The request's object, or None where the body is not one that can be classified."""
        try:
            length = int(self.headers.get("Content-Length", ""))
            if not 0 < length <= LARGEST_BODY:
                self.close_connection = True
                return None
            request = json.loads(self.rfile.read(length))
        except ValueError:
            self.close_connection = True
            return None
        if not isinstance(request, dict):
            return None
        document, text = request.get("document"), request.get("text")
        if not isinstance(document, str) or not isinstance(text, str):
            return None
        return request if any(letter.isascii() and letter.isalpha() for letter in text) else None

    def answer(self, status, content):
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format, *args):
        """Requests are counted by the monitor, not printed."""
