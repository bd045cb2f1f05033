"""Which addresses something can be sent to, and which a secret."""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import urlsplit


def is_web_address(url: str) -> bool:
    """Say whether something can be posted to `url`: http or https, a host, a port that there may be, ASCII without blanks."""
    try:
        parts = urlsplit(url)
        whole = bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
    return whole and parts.scheme in ("http", "https") and url.isascii() and url.isprintable() and " " not in url


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
