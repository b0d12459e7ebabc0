"""Windows hold what they say, and their digest changes exactly when what a model sees changes."""

import numpy as np
import pytest

from gnomon.corpus import FirstToken, Windows
from gnomon.errors import ConfigError, CorpusError

NOTHING = FirstToken(policy="auto", placed=False, id=None, text=None, special=False, why="")


def windows(**changes):
    lengths = [3, 1, 4, 3]
    real = np.arange(4) < np.array(lengths)[:, None]
    arguments = {
        "tokens": np.where(real, np.arange(16).reshape(4, 4) + 5, 0),
        "lengths": lengths,
        "special": np.zeros((4, 4), bool),
        "document": [0, 0, 1, 1],
        "start": [0, 9, 0, 7],
        "source": "numbers",
        "seed": 1,
        "first_token": NOTHING,
        "pad_id": 0,
    }
    return Windows(**{**arguments, **changes})


def test_batches_group_like_lengths_longest_first_and_cover_everything():
    batches = list(windows().batches(2))
    assert [list(batch) for batch in batches] == [[2, 0], [3, 1]]
    assert [list(batch) for batch in windows().batches(2)] == [[2, 0], [3, 1]]
    assert sorted(np.concatenate(list(windows().batches(3)))) == [0, 1, 2, 3]


def test_take_keeps_the_width_and_trimmed_drops_what_is_padding_in_all():
    taken = windows().take([3, 1])
    assert taken.tokens.tolist() == [[17, 18, 19, 0], [9, 0, 0, 0]]
    assert taken.start.tolist() == [7, 9]
    assert taken.trimmed().tokens.tolist() == [[17, 18, 19], [9, 0, 0]]
    assert (len(taken), taken.length, taken.num_tokens) == (2, 4, 4)


def test_digest_is_fixed_and_ignores_padding_and_names():
    base = windows()
    assert base.digest() == "9ebe192d4678af639667146daba93bd5da4c7a3f8d4399a39bf6a15d625e7c26"
    assert windows(source="other", seed=5).digest() == base.digest()
    padded = np.where(base.real, base.tokens, 7)
    assert windows(tokens=padded, pad_id=7).digest() == base.digest()
    changed = base.tokens.copy()
    changed[0, 0] = 99
    assert windows(tokens=changed).digest() != base.digest()
    special = base.special.copy()
    special[0, 0] = True
    assert windows(special=special).digest() != base.digest()


def test_arrays_cannot_be_written_and_do_not_follow_their_origin():
    origin = windows().tokens.copy()
    made = windows(tokens=origin)
    origin[0, 0] = 1000
    assert made.tokens[0, 0] == 5
    with pytest.raises(ValueError, match="read-only"):
        made.tokens[0, 0] = 3


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tokens": np.zeros((0, 4))}, "not be empty"),
        ({"tokens": np.zeros(4)}, "must have shape"),
        ({"lengths": [3, 0, 4, 3]}, "`lengths` must lie in 1..4"),
        ({"lengths": [3, 1, 5, 3]}, "`lengths` must lie in 1..4"),
        ({"lengths": [3, 1, 4]}, "`lengths` must have shape"),
        ({"document": [0]}, "`document` must have shape"),
        ({"pad_id": 3}, "padded on the right"),
        ({"special": np.ones((4, 4), bool)}, "False on padding"),
        ({"tokens": -np.ones((4, 4)), "lengths": [4] * 4}, "at least 0"),
    ],
)
def test_construction_rejects(changes, message):
    with pytest.raises(CorpusError, match=message):
        windows(**changes)


def test_a_batch_needs_a_size():
    with pytest.raises(ConfigError, match="`size`"):
        list(windows().batches(0))
