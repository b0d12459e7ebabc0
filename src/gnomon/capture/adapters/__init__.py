"""Adapters: attention classes that compute by themselves, rerouted through gnomon's attention function.

Some families never ask transformers for an attention function: BLOOM, MPT, GPT-J, Falcon and GPT-Neo multiply queries and keys in code of their
own. Registering a function changes nothing for them, and worse: BLOOM loaded under a custom name loses its causal mask without a word.
An adapter replaces the attention of one model's modules, by attributes of the instances, and takes them off again;
transformers' classes stay as they are. Each passes causality, window and bias as structure and is proved like every other model.
"""

from gnomon.capture.adapters.registry import adapter_for
from gnomon.capture.adapters.rerouting import Adapter

__all__ = ["Adapter", "adapter_for"]
