"""Runs the command: /usr/bin/python3 -m collect."""

import sys

from collect.cli import main

sys.exit(main(sys.argv[1:]))
