"""Which addresses a secret may be sent to."""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import urlsplit


def may_carry_secrets(url: str) -> bool:
    """Say whether `url` is https, or http on this very machine (localhost or a loopback address)."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return False
    return bool(host) and (parts.scheme == "https" or (parts.scheme == "http" and _is_here(host)))


def _is_here(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
