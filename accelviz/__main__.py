"""The command `accelviz`, also as `python -m accelviz`."""

from __future__ import annotations

import _thread
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
    """Run the command line; return the exit status, 130 after Ctrl-C."""
    hook, sys.unraisablehook = sys.unraisablehook, _interrupt_again
    try:
        from accelviz import cli  # takes a moment, in which Ctrl-C may come

        return cli.main()
    except KeyboardInterrupt:
        print("accelviz: interrupted", file=sys.stderr)
        return 128 + 2  # as of shells: 128 and the number of the signal
    finally:
        sys.unraisablehook = hook


if __name__ == "__main__":
    sys.exit(main())
