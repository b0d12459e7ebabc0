"""What was installed, where it ran and from which commit: the facts that make a number repeatable."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

PACKAGES = (
    "gnomon",
    "torch",
    "transformers",
    "tokenizers",
    "safetensors",
    "gguf",
    "numpy",
    "scipy",
    "xarray",
    "zarr",
    "PyWavelets",
    "gudhi",
)


def package_versions() -> dict[str, str | None]:
    """Installed versions of the packages that numbers depend on, without importing them."""
    versions: dict[str, str | None] = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions[name] = None
    return versions


def machine() -> dict[str, Any]:
    """Kind of machine: system, processor and number of cores; no names of users or hosts."""
    return {"system": platform.system(), "architecture": platform.machine(), "cores": os.cpu_count()}


def git_state() -> dict[str, Any] | None:
    """Commit of the checkout that this gnomon runs from, and whether it was changed; ``None`` outside a checkout."""
    checkout = Path(__file__).resolve().parents[3]
    if not (checkout / ".git").exists() or not (checkout / "pyproject.toml").exists():
        return None
    commit = _git(checkout, "rev-parse", "HEAD")
    if commit is None:
        return None
    changed = _git(checkout, "status", "--porcelain", "--untracked-files=no", "--", "src")
    return {"commit": commit, "changed": None if changed is None else bool(changed)}


def now() -> str:
    """The time in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _git(folder: Path, *arguments: str) -> str | None:
    environment = {**os.environ, "GIT_OPTIONAL_LOCKS": "0"}
    command = ["git", "-C", str(folder), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False, env=environment)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
