"""Run folders: what a survey leaves on disk, and how it is read back.

A run is a folder with ``survey.zarr`` (one group per measure), ``run.json`` (what was run, on what, with which outcome and the
headline numbers) and, while it is unfinished, ``parts/`` (what each batch contributed). Nothing in it is ever half written: every
file takes its place by a rename, and ``run.json`` says ``complete`` only after everything else is in place.
"""

from gnomon.result.folder import RunFolder, is_run
from gnomon.result.reading import open_run
from gnomon.result.survey import Survey
from gnomon.result.writer import RunWriter

__all__ = ["RunFolder", "RunWriter", "Survey", "is_run", "open_run"]
