"""The one table of dimension names.

Tensors inside the engine carry a suffix of capital letters that spells their shape (``scores_BHQK``); datasets carry full
words. Both come from this table and nowhere else.

=======  ==============  =====================================================================
letter   word            meaning
=======  ==============  =====================================================================
B        sequence        one token window; the unit of replication of every statistic
L        layer           attention layer, from 0
H        head            query head within a layer, from 0
G        kv_head         key/value head (``H / G`` query heads share one)
S, T     position        token position, from 0
Q        query           position that attends
K        key             position attended to
R        offset          query - key; >= 0 under a causal mask
D        head_feature    feature within a head
E        feature         feature of the residual stream
P        rotary_pair     pair of features rotated together
V        vocabulary      token id
=======  ==============  =====================================================================
"""

from typing import Final

SEQUENCE: Final = "sequence"
LAYER: Final = "layer"
HEAD: Final = "head"
KV_HEAD: Final = "kv_head"
POSITION: Final = "position"
QUERY: Final = "query"
KEY: Final = "key"
OFFSET: Final = "offset"
QUERY_BAND: Final = "query_band"
OFFSET_BAND: Final = "offset_band"
HEAD_FEATURE: Final = "head_feature"
FEATURE: Final = "feature"
ROTARY_PAIR: Final = "rotary_pair"
VOCABULARY: Final = "vocabulary"
SPECIAL: Final = "special"
BOUND: Final = "bound"
CONDITION: Final = "condition"
CHECKPOINT: Final = "checkpoint"
THRESHOLD: Final = "threshold"
BAND: Final = "band"
FREQUENCY: Final = "frequency"
SCALE: Final = "scale"
LEVEL: Final = "level"
POSITION_BAND: Final = "position_band"
RANK: Final = "rank"
DEPTH: Final = "depth"
TOKEN: Final = "token"
AXIS: Final = "axis"
SHIFT: Final = "shift"
RUN: Final = "run"

LETTERS: Final[dict[str, str]] = {
    "B": SEQUENCE,
    "L": LAYER,
    "H": HEAD,
    "G": KV_HEAD,
    "S": POSITION,
    "T": POSITION,
    "Q": QUERY,
    "K": KEY,
    "R": OFFSET,
    "D": HEAD_FEATURE,
    "E": FEATURE,
    "P": ROTARY_PAIR,
    "V": VOCABULARY,
}
