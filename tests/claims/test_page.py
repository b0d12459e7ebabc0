"""The page of claims says what the ledger does."""

import importlib.util
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_page_is_that_of_the_ledger():
    spec = importlib.util.spec_from_file_location("claims_reference", ROOT / "scripts" / "claims_reference.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    text = (ROOT / "docs" / "claims.md").read_text(encoding="utf-8")
    assert script.page(text) == text, "run `python scripts/claims_reference.py docs/claims.md`"
