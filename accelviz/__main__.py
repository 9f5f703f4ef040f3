"""The command `accelviz`, also as `python -m accelviz`."""

import sys


def main() -> int:
    """Run the command line; return the exit status, 130 after Ctrl-C."""
    try:
        from accelviz import cli  # takes a moment, in which Ctrl-C may come

        return cli.main()
    except KeyboardInterrupt:
        print("accelviz: interrupted", file=sys.stderr)
        return 128 + 2  # as of shells: 128 and the number of the signal


if __name__ == "__main__":
    sys.exit(main())
