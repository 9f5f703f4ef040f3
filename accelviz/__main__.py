"""`python -m accelviz` is the command `accelviz`."""

import sys

from accelviz.cli import main

sys.exit(main())
