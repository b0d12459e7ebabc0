"""The line that answers what kind of frame a model builds."""

import io

from rich.console import Console

from gnomon.measure.frames import Frames
from gnomon.report.terminal.frames import answer, section
from gnomon.result import Survey
from tests.oracle.given import finished, star, view_of
from tests.oracle.test_frames import sequences


def survey_of(*layers, causal=True):
    measure = Frames()
    dataset = finished(measure, [view_of(rows, causal=causal, layer=index) for index, rows in enumerate(layers)], causal=causal)
    labels = {"frames": measure.labels(dataset)}
    return Survey({"labels": labels}, {"frames": measure.headline(dataset)}, {"frames": lambda: dataset})


def printed(renderable):
    out = io.StringIO()
    Console(file=out, width=120, no_color=True).print(renderable)
    return out.getvalue()


def test_one_line_says_which_kind_how_sure_and_where_it_changes():
    flat, framed = sequences(star(24, 0.0)), sequences(star(24, 0.7))
    survey = survey_of(flat, framed, framed)
    line = printed(answer(survey))
    assert line.count("\n") == 1
    assert line.startswith("Frame: centralized, score ")
    assert "67 % of heads" in line
    assert "layers none 0, centralized 1-2" in line
    page = printed(section(survey))
    assert "Shuffled rows score" in page
    assert "centralized" in page


def test_a_missing_answer_gives_its_reason():
    line = printed(answer(survey_of(sequences(star(4, 0.7)))))
    assert "unknown" in line
    assert "too short" in line
