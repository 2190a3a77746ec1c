"""`python -m dagpost` is the command line."""

import sys

from dagpost.interfaces.cli import main

sys.exit(main())
