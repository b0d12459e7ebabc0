"""The report as one file: everything inside, nothing fetched, readable in ten years.

``write_report(survey, path)`` reads a run folder and writes a page that opens from disk. Sentences, tables and provenance are plain HTML; pictures
are drawn in the browser from the numbers that the page carries. Text that comes from models and runs is shown, never run.
"""

from gnomon.report.html.page import report_html, write_report

__all__ = ["report_html", "write_report"]
