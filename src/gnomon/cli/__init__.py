"""The command line: one thin file per command.

A command parses its options, calls the library and prints. Heavy packages are imported inside the functions, so that
``gnomon --help`` does not load torch. To add a command, write a file with one function and list it in ``COMMANDS`` of ``app.py``.
"""

from gnomon.cli.app import main

__all__ = ["main"]
