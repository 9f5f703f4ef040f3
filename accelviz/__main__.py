"""The command `accelviz`, also as `python -m accelviz`."""

from __future__ import annotations

import _thread
import io
import signal
import sys
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sys import UnraisableHookArgs


def _interrupt_again(ignored: UnraisableHookArgs) -> None:
    """Repeat a Ctrl-C that Python ignored, soon after the finalizer or callback where it came."""
    if issubclass(ignored.exc_type, KeyboardInterrupt):
        threading.Timer(0.01, _thread.interrupt_main).start()
    else:
        sys.__unraisablehook__(ignored)


def main() -> int:
    """Run the command line; return the exit status, 130 after Ctrl-C.

    An import turns Ctrl-C into other exceptions: Python before 3.12 into RuntimeError where a
    class is made, NumPy's C interface into ImportError. So the signal decides, not the exception.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):  # ASCII alone in some shells, and names are not
        sys.stdout.reconfigure(errors="backslashreplace")
    sys.stdout = sys.stdout or io.StringIO()  # closed, as by >&-
    interrupted = False

    def interrupt(*_: object) -> None:
        nonlocal interrupted
        interrupted = True
        raise KeyboardInterrupt

    hook, sys.unraisablehook = sys.unraisablehook, _interrupt_again
    handler = signal.signal(signal.SIGINT, interrupt)
    try:
        from accelviz import cli  # takes a moment, in which Ctrl-C may come

        status = cli.main()
    except BaseException as error:
        interrupted = interrupted or isinstance(error, KeyboardInterrupt)
        if not interrupted:
            raise
        status = -1
    finally:
        signal.signal(signal.SIGINT, handler)
        sys.unraisablehook = hook
    if interrupted and status:
        print("accelviz: interrupted", file=sys.stderr)
        return 128 + 2  # as of shells: 128 and the number of the signal
    return status


if __name__ == "__main__":
    sys.exit(main())
