"""The claims ledger: what four papers say, judged on runs by stated rules.

>>> from gnomon.study.claims import judge
>>> judge(gnomon.open("runs/first"))  # doctest: +SKIP

:mod:`~gnomon.study.claims.rules` decides, :mod:`~gnomon.study.claims.evidence` reads, one module per family of claims knows where to look,
:mod:`~gnomon.study.claims.plan` makes the runs that claims need.
"""

from gnomon.study.claims.claim import Answer, Claim
from gnomon.study.claims.evidence import Evidence
from gnomon.study.claims.ledger import LEDGER, choose_claims, judge
from gnomon.study.claims.verdict import VERDICTS, Verdict

__all__ = ["LEDGER", "VERDICTS", "Answer", "Claim", "Evidence", "Verdict", "choose_claims", "judge"]
