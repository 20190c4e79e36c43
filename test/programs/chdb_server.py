"""ClickHouse's newest engine (PyPI chdb) behind HTTP, as far as the store in ClickHouse uses it.

chdb runs in this process and has no server of its own. Each request is one statement, as in the real one: an INSERT with
rows in RowBinary, a SELECT with tables beside it in a form, or a statement in the body. Prints its port.
"""

import os
import re
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlparse

from chdb import session

engine = session.Session(tempfile.mkdtemp(dir=sys.argv[1]))
alone = threading.Lock()


def run(sql, answer="TabSeparated"):
    return bytes(engine.query(sql, answer).bytes())


def from_file(into, data, form, structure):
    handle, path = tempfile.mkstemp(dir=sys.argv[1])
    with os.fdopen(handle, "wb") as file:
        file.write(data)
    try:
        run(f"INSERT INTO {into} SELECT * FROM file('{path}', '{form}', '{structure}')")
    finally:
        os.remove(path)


def insert(sql, rows):
    table, columns = re.match(r"INSERT INTO (\S+) \((.*?)\) FORMAT RowBinary", sql, re.S).groups()
    database, name = table.split(".")
    known = run(
        "SELECT name, type FROM system.columns "
        f"WHERE database = '{database}' AND table = '{name}'"
    )
    types = dict(line.split("\t") for line in known.decode().strip().split("\n"))
    names = [column.strip() for column in columns.split(",")]
    structure = ", ".join(f"{column} {types[column]}" for column in names)
    from_file(f"{table} ({columns})", rows, "RowBinary", structure)
    return b""


# Parameters of the address that are not settings.
NO_SETTINGS = {"query", "query_id", "wait_end_of_query"}


def apply_settings(parameters):
    for name, value in parameters.items():
        if name not in NO_SETTINGS and not name.endswith("_structure"):
            run(f"SET {name} = {value}")


def select(sql, kind, body, parameters):
    made = []
    try:
        boundary = re.search("boundary=(.*)", kind)
        for part in body.split(b"--" + boundary[1].encode())[1:-1] if boundary else []:
            head, data = part.split(b"\r\n\r\n", 1)
            name = re.search(rb'name="(\w+)"', head)[1].decode()
            structure = parameters[f"{name}_structure"]
            run(f"CREATE TABLE default.{name} ({structure}) ENGINE = Memory")
            made.append(name)
            from_file(f"default.{name}", data[:-2], "TabSeparated", structure)
        return run(re.sub(r"FORMAT JSONEachRow\s*$", "", sql), "JSONEachRow")
    finally:
        for name in made:
            run(f"DROP TABLE default.{name}")


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def read_body(self):
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = b""
        while True:
            size = int(self.rfile.readline(), 16)
            body += self.rfile.read(size)
            self.rfile.readline()
            if size == 0:
                return body

    def do_POST(self):
        query = parse_qs(urlparse(self.path).query, keep_blank_values=True)
        parameters = {name: values[0] for name, values in query.items()}
        body = self.read_body()
        sql = parameters.get("query")
        status = 200
        with alone:
            try:
                apply_settings(parameters)
                if sql is None:
                    answer = run(body.decode())
                elif sql.startswith("INSERT"):
                    answer = insert(sql, body)
                else:
                    answer = select(sql, self.headers.get("Content-Type") or "", body, parameters)
            except Exception as error:
                status, answer = 500, str(error).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)


run("CREATE DATABASE IF NOT EXISTS default")
run("USE default")
server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
