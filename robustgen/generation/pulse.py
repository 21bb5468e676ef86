"""Signs of life: how far each worker is in the task it has in hand, written where the run can read it.

<output>/.robustgen/tmp/<run>-<host>-<process>    how many outputs of its task are made: "      7"

The folder is all that a run shares with every worker, be it a process of this machine or of a cluster.
"""

import os
import socket
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

SECONDS_BETWEEN_SIGNS = 0.5
_last_run, _last_made, _last_sign = "", 0, 0.0


class Sign(NamedTuple):
    """What one worker has told last: outputs `made` of its task, and when, in seconds since 1970."""

    host: str
    process: int
    made: int
    time: float


@dataclass(frozen=True)
class Pulse:
    """Where the workers of one run leave their signs. Picklable.

    Attributes
    ----------
    folder : Path or None
        The temporary files of the output; None where nobody looks.
    run : str
        What tells the files of this run from those of shards that run at the same time.
    """

    folder: Path | None = None
    run: str = ""

    def tell(self, made: int) -> None:
        """In a worker: tell how many outputs of its task are made, twice a second at most."""
        global _last_run, _last_made, _last_sign
        now = time.monotonic()
        too_soon = made and now - _last_sign < SECONDS_BETWEEN_SIGNS
        if self.folder is None or too_soon or (self.run, made) == (_last_run, _last_made):
            return
        _last_run, _last_made, _last_sign = self.run, made, now
        path = self.folder / f"{self.run}-{socket.gethostname()}-{os.getpid()}"
        # A disk that is full is noticed where it matters: at the outputs.
        with suppress(OSError):
            file = os.open(path, os.O_WRONLY | os.O_CREAT)
            try:
                os.write(file, b"%7d" % made)
            finally:
                os.close(file)

    def read(self) -> list[Sign]:
        """In the run: the signs of all workers, the longest silent first."""
        signs = []
        for path in self._files():
            # It may be removed or be begun meanwhile.
            with suppress(OSError, ValueError):
                host, _, process = path.name.removeprefix(f"{self.run}-").rpartition("-")
                signs.append(Sign(host, int(process), int(path.read_bytes() or 0), path.stat().st_mtime))
        return sorted(signs, key=lambda sign: sign.time)

    def forget(self) -> None:
        """Remove the signs, before other workers start or at the end."""
        for path in self._files():
            path.unlink(missing_ok=True)

    def _files(self) -> list[Path]:
        return [] if self.folder is None else list(self.folder.glob(f"{self.run}-*"))


NO_PULSE = Pulse()
