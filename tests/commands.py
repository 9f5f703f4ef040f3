"""Commands of accelviz in the tests' own process."""

from accelviz import cli


def command(capsys, *words):
    """Return (output and errors, exit status) of a command."""
    capsys.readouterr()
    try:
        status = cli.main([*map(str, words)])
    except SystemExit as end:  # of argparse
        status = end.code
    captured = capsys.readouterr()
    return captured.out + captured.err, status
