r"""Text of strangers, made visible.

Token strings and names come from models, notes from runs. Escaping keeps them from acting; but characters that turn the direction of writing, take no
width or control a terminal would still deceive the eye, so they are shown as their code, ``\u202e``.
"""

from __future__ import annotations

import unicodedata

INVISIBLE = frozenset(("Cc", "Cf", "Cs", "Co", "Zl", "Zp"))


def visible(value: object) -> str:
    """The text with every invisible character written out as a code; line breaks and tabs become spaces."""
    return "".join(_shown(letter) for letter in str(value))


def _shown(letter: str) -> str:
    if letter in "\n\t":
        return " "
    if unicodedata.category(letter) not in INVISIBLE and letter != "\u115f":
        return letter
    code = ord(letter)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
