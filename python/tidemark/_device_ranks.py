"""The ranks of a job: when one of them writes a snapshot, the others write theirs, too.

    rank 3 runs out of memory    tidemark-JOB-rank3-PID-oom-1.pickle appears in the folder of the snapshots
    each rank, at each reading   has the folder changed? is there a new snapshot of the job that is not an answer
                                 itself? then it writes its own: tidemark-JOB-rank0-PID-peer-1.pickle

The snapshots themselves are the only messages. So ranks on several hosts notice each other if they write into one
folder. No port is opened, the job's own store (torch.distributed) is not used, and no other files are left.

JOB is derived from the address at which the ranks meet and torchrun's id of the run. Two jobs that meet at
"localhost" on two hosts are different jobs.
"""

import hashlib
import os
import sys
from typing import Optional, Set

ANSWER = "peer"

_HERE = ("localhost", "127.", "::1")


class Ranks:
    """The other ranks that write their snapshots into ``directory``."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._changed: Optional[int] = None
        self._settled = False
        self._known: Optional[Set[str]] = None

    def stem(self) -> str:
        """The beginning of the names of this process's snapshots."""
        job, rank = self._job(), self._rank()
        names = ["tidemark", job, None if job is None or rank is None else f"rank{rank}"]
        return "-".join([name for name in names if name is not None] + [str(os.getpid())])

    def asked(self) -> bool:
        """Whether another rank has written a snapshot since the last call. The first call only records the existing
        ones. False if the folder does not exist or cannot be read."""
        job = self._job()
        if job is None:
            return False
        try:
            # Open the folder instead of calling stat: then a network file system asks its server.
            folder = os.open(self._directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                changed = os.fstat(folder).st_mtime_ns
                # List again after a change: two changes may have the same time.
                if changed == self._changed and self._settled:
                    return False
                self._settled = changed == self._changed
                names = {name for name in os.listdir(folder) if self._asks(name, job)}
            finally:
                os.close(folder)
        except OSError:
            self._known = self._known or set()
            return False
        self._changed = changed
        new = set() if self._known is None else names - self._known
        self._known = names
        own = self.stem()
        return any(not name.startswith(f"{own}-") for name in new)

    @staticmethod
    def _asks(name: str, job: str) -> bool:
        return (
            name.startswith(f"tidemark-{job}-")
            and name.endswith(".pickle")
            and f"-{ANSWER}-" not in name
        )

    def _job(self) -> Optional[str]:
        get = os.environ.get
        address, port = get("MASTER_ADDR"), get("MASTER_PORT")
        if not address or not port:
            return None
        host = os.uname().nodename if address.startswith(_HERE) else ""
        words = "\0".join([address, port, get("TORCHELASTIC_RUN_ID", ""), host])
        return hashlib.sha256(words.encode("utf-8", "surrogateescape")).hexdigest()[:6]

    def _rank(self) -> Optional[str]:
        """The rank from torch.distributed if the program has set it up; else from its launcher."""
        distributed = sys.modules.get("torch.distributed")
        try:
            if distributed is not None and distributed.is_initialized():
                return str(distributed.get_rank())
        except Exception:  # a build of torch without it
            pass
        return os.environ.get("RANK")
