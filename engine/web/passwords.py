"""The users of the pages: a file with a name and a hashed password in each line, as `name:hash`.

Hashes are Argon2id (argon2-cffi, with the parameters that RFC 9106 recommends where memory is scarce).
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import stat
import tempfile
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from engine.errors import UsageError
from engine.rights import make_folder

LEAST_PASSWORD, MOST_PASSWORD = 10, 200  # characters
_NAME = re.compile(r"[\w.@+-]{1,64}")
_AT_ONCE = 2  # hashes of passwords that are computed at the same time: each takes 64 MiB
_HEADING = "# users of tocsin's pages; tocsin web passwd NAME changes this file\n"


class Users:
    """The users in the file at `path`, which is read again when it has changed. May be used by several threads.

    Raises UsageError, from every method, when the file cannot be read, has a line that is no user, or may be written by others.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._hasher = PasswordHasher()
        self._stamp: tuple[int, int] | None = None
        self._hashes: Mapping[str, str] = {}
        self._lock, self._turns = threading.Lock(), threading.Semaphore(_AT_ONCE)
        self._nobody = self._hasher.hash(os.urandom(16))

    def verify(self, name: str, password: str) -> bool:
        """Return whether `password` is that of the user `name`. It takes as long for a name that is no user."""
        hashed = self.hashes().get(name)
        try:
            with self._turns:
                self._hasher.verify(hashed or self._nobody, password[: MOST_PASSWORD + 1])
        except (VerificationError, InvalidHashError):
            return False
        return hashed is not None

    def fingerprint(self, name: str) -> str:
        """Return what changes with the password of a user; empty when there is no such user."""
        hashed = self.hashes().get(name, "")
        return hashlib.sha256(hashed.encode()).hexdigest()[:16] if hashed else ""

    def hashes(self) -> Mapping[str, str]:
        """Return the hash of each user's password by name."""
        with self._lock:
            try:
                status = self._path.stat()
                if (stamp := (status.st_mtime_ns, status.st_size)) != self._stamp:
                    self._hashes, self._stamp = read_users(self._path), stamp
            except OSError as error:
                raise UsageError(f"{self._path}: the users cannot be read ({error.strerror})") from None
            return self._hashes


def read_users(path: Path) -> Mapping[str, str]:
    """Return the hash of each user's password by name, in the order of the file. Raises OSError and UsageError."""
    if path.stat().st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise UsageError(f"{path}: other users of this machine can write to it, and so add users; chmod 600 {path}")
    hashes: dict[str, str] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        name, _, hashed = line.strip().partition(":")
        if not _NAME.fullmatch(name) or not hashed.startswith("$argon2"):
            raise UsageError(f"{path}:{number}: not a user, which is NAME:HASH; tocsin web passwd NAME writes one")
        hashes[name] = hashed
    return hashes


def put_user(path: Path, name: str, password: str) -> bool:
    """Store a user with a new password; return whether the user is new. Raises UsageError and OSError."""
    if not _NAME.fullmatch(name):
        raise UsageError(f"`{name}` is not a name; it has letters, digits and . _ @ + - only, and at most 64 of them")
    if not LEAST_PASSWORD <= len(password) <= MOST_PASSWORD:
        raise UsageError(f"a password has {LEAST_PASSWORD} to {MOST_PASSWORD} characters, this one has {len(password)}")
    hashed = PasswordHasher().hash(password)
    with _changing(path) as hashes:
        is_new = name not in hashes
        _write(path, {**hashes, name: hashed}.items())
    return is_new


def remove_user(path: Path, name: str) -> bool:
    """Remove a user; return whether there was one. Raises UsageError and OSError."""
    with _changing(path) as hashes:
        if name not in hashes:
            return False
        _write(path, ((user, hashed) for user, hashed in hashes.items() if user != name))
    return True


@contextmanager
def _changing(path: Path) -> Iterator[Mapping[str, str]]:
    """Yield the users in the file, none without a file; until the end no other process changes it."""
    make_folder(path.parent)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield read_users(path) if path.exists() else {}
    finally:
        os.close(folder)


def _write(path: Path, users: Iterable[tuple[str, str]]) -> None:
    """Replace the file as a whole; only this user can read the new one."""
    text = _HEADING + "".join(f"{name}:{hashed}\n" for name, hashed in users)
    number, temporary = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    with os.fdopen(number, "w", encoding="utf-8") as file:
        file.write(text)
    Path(temporary).replace(path)
