"""`python -m dagpost` is the command line."""

import sys

from dagpost.cli import main

sys.exit(main())
