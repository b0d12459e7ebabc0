"""Name or object in, :class:`PositionModel` out."""

from gnomon.model.anatomy import Anatomy
from gnomon.model.description import describe_model
from gnomon.model.fetching import FETCHABLE, fetch
from gnomon.model.loading import load
from gnomon.model.position_model import PositionModel
from gnomon.model.scheme import Scheme
from gnomon.model.untrained import untrained_like

__all__ = ["FETCHABLE", "Anatomy", "PositionModel", "Scheme", "describe_model", "fetch", "load", "untrained_like"]
