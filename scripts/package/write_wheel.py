"""Writes a wheel (packaging.python.org, binary distribution format) from a list of files.

    write_wheel.py LIST.json     {"wheel": PATH, "record": NAME, "files": [{"path", "source" or "text", "executable"}]}

The same files give the same bytes: entries are sorted, and their time is SOURCE_DATE_EPOCH or 2020-01-01.
"""

import base64
import hashlib
import json
import os
import sys
import time
import zipfile

#: The earliest time that the zip format can store.
EARLIEST = 315532800
DEFAULT_TIME = 1577836800


def content(file):
    if "text" in file:
        return file["text"].encode()
    with open(file["source"], "rb") as source:
        return source.read()


def record_line(path, data):
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    if "," in path or '"' in path:
        raise SystemExit(f"{path}: a name with a comma or a quotation mark")
    return f"{path},sha256={digest},{len(data)}\n"


def write(wheel, record, files):
    moment = max(int(os.environ.get("SOURCE_DATE_EPOCH") or DEFAULT_TIME), EARLIEST)
    when = time.gmtime(moment)[:6]
    lines = []
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:

        def add(path, data, executable):
            entry = zipfile.ZipInfo(path, when)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = 3  # Unix: the mode is in external_attr
            entry.external_attr = (0o100755 if executable else 0o100644) << 16
            archive.writestr(entry, data)

        # The folder dist-info comes last, as the specification recommends.
        for file in sorted(files, key=lambda file: (".dist-info/" in file["path"], file["path"])):
            data = content(file)
            add(file["path"], data, file.get("executable", False))
            lines.append(record_line(file["path"], data))
        add(record, ("".join(lines) + f"{record},,\n").encode(), False)


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as listing:
        write(**json.load(listing))
