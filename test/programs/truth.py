"""A test program's own count of its memory, reported to the test that checks its profile.

A line that allocates has the comment `# known: NAME`. The program states how many bytes were
requested there and how many are still live; report() prints one JSON object with the sites by file,
function and line, and what the kernel reports about the process.
"""
import inspect
import json
import os
import resource
import sys


class Truth:
    def __init__(self):
        self.sites = []

    def site(self, name, function, live_bytes, allocated_bytes=None, through=False):
        """through: the memory is requested below that line, by other Python functions."""
        code = inspect.unwrap(function).__code__
        lines, first = inspect.getsourcelines(code)
        offset = next(i for i, line in enumerate(lines) if f"# known: {name}" in line)
        self.sites.append(
            {
                "name": name,
                "function": function.__name__,
                "file": os.path.basename(code.co_filename),
                "line": first + offset,
                "liveBytes": live_bytes,
                "allocatedBytes": allocated_bytes,
                "through": through,
            }
        )

    def report(self):
        own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        print(
            json.dumps(
                {
                    "pid": os.getpid(),
                    "python": "%d.%d.%d" % sys.version_info[:3],
                    "maxRssBytes": own,
                    "sites": self.sites,
                }
            ),
            flush=True,
        )
