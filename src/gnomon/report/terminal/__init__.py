"""What is printed after a run and by ``gnomon show``: a header, a section per measure, and where things are.

``SECTIONS`` maps the name of a measure to ``"module:function"``; the function takes a :class:`~gnomon.result.Survey` and returns
anything that rich prints. A measure without an entry is shown by its headline numbers alone.
"""

from gnomon.report.terminal.page import print_survey, survey_page
from gnomon.report.terminal.sections import SECTIONS

__all__ = ["SECTIONS", "print_survey", "survey_page"]
