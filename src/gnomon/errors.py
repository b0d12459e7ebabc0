"""Errors that a user can cause or mend.

Each carries one sentence: what must hold, what was found, and what to do. The command line prints that sentence and exits
with ``exit_code``; nothing in the library catches them to go on with a wrong number.
"""


class GnomonError(Exception):
    """Base of everything gnomon raises on purpose."""

    exit_code = 1


class ConfigError(GnomonError, ValueError):
    """An argument or option that cannot be honoured."""

    exit_code = 2


class ModelError(GnomonError):
    """A model that cannot be found, read or trusted."""


class UnsupportedModelError(ModelError):
    """A model whose attention gnomon cannot observe faithfully."""


class CorpusError(GnomonError):
    """Text that is missing, empty, too short or unreadable."""


class RunError(GnomonError):
    """A run folder that is missing, incomplete, damaged or of another schema."""


class ResourceError(GnomonError):
    """Memory, disk or a device that does not suffice."""


class MissingExtraError(GnomonError):
    """An optional dependency that is not installed."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(f"{purpose} needs {package}, which is not installed; run `pip install 'gnomon[{extra}]'`.")
