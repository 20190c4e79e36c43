"""fastapi_service.py with the standard library alone, for interpreters without packages: `plain_service.py PORT`."""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

recent = []


class Orders(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self):
        order = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        lines = [{"item": item, "price": item * 1.25, "note": "item %d of %s" % (item, order["customer"])} for item in order["items"]]
        recent.append({"customer": order["customer"], "total": sum(line["price"] for line in lines)})
        del recent[:-500]
        body = json.dumps({"lines": lines, "recent": len(recent)}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Orders).serve_forever()
