"""Checks of URLs: where something can be posted, and where a secret may be sent."""

from __future__ import annotations

from ipaddress import IPv4Network, IPv6Network, ip_address
from urllib.parse import urlsplit

Network = IPv4Network | IPv6Network


def is_web_address(url: str) -> bool:
    """Return whether `url` can be posted to: http or https, a host, no invalid port, printable ASCII without blanks."""
    try:
        parts = urlsplit(url)
        has_host = bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
    return has_host and parts.scheme in ("http", "https") and url.isascii() and url.isprintable() and " " not in url


def may_carry_secrets(url: str) -> bool:
    """Return whether `url` is https, or http to this machine (localhost or a loopback address)."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return False
    return bool(host) and (parts.scheme == "https" or (parts.scheme == "http" and _is_local(host)))


def _is_local(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
