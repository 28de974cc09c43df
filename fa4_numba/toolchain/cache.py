"""A content-addressed cache of compiled kernels on disk.

An entry is one file named by the hash of everything that went into it, holding the hash of its own payload. Writers
put a finished temporary file in place with one rename, so readers in other processes see a whole entry or none; an
entry whose payload does not match its hash is dropped and built again.
"""

import contextlib
import hashlib
import os
import pickle
import sys
import tempfile
import warnings
from pathlib import Path

ENVIRONMENT_VARIABLE = "FA4_NUMBA_CACHE"
_MAGIC = b"fa4_numba cache 1\n"


class CacheWarning(UserWarning):
    """The cache cannot be used; kernels are compiled anew in every process."""


def cache_folder() -> Path:
    """Return the folder: ``FA4_NUMBA_CACHE`` if set, else the user's cache folder."""
    if os.environ.get(ENVIRONMENT_VARIABLE):
        return Path(os.environ[ENVIRONMENT_VARIABLE]).expanduser()
    if sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "fa4_numba"


def key_of(*parts: str) -> str:
    """Return the name of the entry made from ``parts``."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(f"{len(part)}:{part}".encode())
    return digest.hexdigest()


def load(key: str) -> dict | None:
    """Return the entry, or None if there is none or it is damaged (then it is removed)."""
    path = cache_folder() / key
    try:
        data = path.read_bytes()
    except OSError:
        return None
    header = len(_MAGIC) + 32
    payload = data[header:]
    if data[: len(_MAGIC)] == _MAGIC and data[len(_MAGIC) : header] == hashlib.sha256(payload).digest():
        return pickle.loads(payload)
    with contextlib.suppress(OSError):  # another process removed it, or the folder is read-only
        path.unlink()
    return None


def store(key: str, entry: dict) -> None:
    """Write an entry; a folder that cannot be written costs a ``CacheWarning``, not the result."""
    payload = pickle.dumps(entry, protocol=pickle.HIGHEST_PROTOCOL)
    folder = cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=folder, prefix=".writing-")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(_MAGIC + hashlib.sha256(payload).digest() + payload)
            os.replace(temporary, folder / key)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as error:
        warnings.warn(
            f"compiled kernels are not cached: {folder} cannot be written ({error.strerror or error}); "
            f"set {ENVIRONMENT_VARIABLE} to a writable folder",
            CacheWarning,
            stacklevel=3,
        )
