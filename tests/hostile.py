"""Give hostile files to commands in this process, whose memory is limited: python tests/hostile.py CASES.json.

Each case is a command line. What it printed, its exit code and the seconds that it took are written to standard
output, one JSON object per case.
"""

import contextlib
import io
import json
import resource
import sys
import time
from pathlib import Path

MEMORY = 1 << 30  # bytes beyond what the process has when it starts


def held() -> int:
    """The address space of this process in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def main(cases: list[list[str]]) -> None:
    import PIL.PngImagePlugin  # noqa: F401
    import pooch  # noqa: F401

    import unordinal.api
    import unordinal.pretrained
    import unordinal.train.loop  # noqa: F401
    from unordinal.cli import run
    from unordinal.data.unpacking import allow_unpacking

    with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
        run(["presets"])  # whatever is imported late
    for words in cases:
        limit = held() + MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
        allow_unpacking(None)
        out, began = io.StringIO(), time.process_time()  # what others do at the same time does not count
        with contextlib.redirect_stderr(out), contextlib.redirect_stdout(io.StringIO()):
            code = run(words)
        found = {"code": code, "said": out.getvalue(), "seconds": time.process_time() - began}
        sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text()))
