"""Creates log lines, parses them with regular expressions, and counts them."""

import collections
import re

LINE = re.compile(r'(?P<host>\S+) \[(?P<time>[^\]]+)\] "(?P<verb>\S+) (?P<path>\S+)" (?P<status>\d+) (?P<size>\d+)')
lines = [
    f'10.0.{n % 200}.{n % 251} [{n // 60:02d}:{n % 60:02d}] "GET /page/{n % 97}?q={n}" {200 + n % 5} {n * 37 % 9000}'
    for n in range(60_000)
]
by_path: collections.Counter[str] = collections.Counter()
by_host: dict[str, list[int]] = collections.defaultdict(list)
for _ in range(14):
    for line in lines:
        match = LINE.match(line)
        assert match
        fields = match.groupdict()
        by_path[fields["path"].split("?")[0]] += 1
        by_host[fields["host"]].append(int(fields["size"]))
print(len(by_path), sum(map(len, by_host.values())))
