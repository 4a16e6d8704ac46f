"""Where a server of the OpenAI protocol is asked and with which key, before anything is sent."""

import os
import re
from urllib.parse import urlsplit

KEY = re.compile("[!-~]+")
HOST = re.compile("[A-Za-z0-9._:-]+")


class KeyUnusable(ValueError):
    """The variable, why it holds no key, and the cure; never the key."""


def flaw(url: str) -> str:
    """Why nothing can be asked there; empty for a sound URL. It may hold a password: not shown."""
    try:
        parts = urlsplit(url)
        host = parts.hostname if parts.port != 0 else None
    except ValueError:
        return "has no sound host and port"
    if parts.scheme not in ("http", "https") or not host or not HOST.fullmatch(host):
        return "has no sound host and port"
    if parts.username is not None or parts.query or parts.fragment:
        return "holds more than host, port and path"
    return ""


def read_key(variable: str) -> str:
    """The key that the environment variable holds. Raises KeyUnusable."""
    key = os.environ.get(variable)
    if not key:
        raise KeyUnusable(f"{variable} is not set; export {variable}=...")
    if not KEY.fullmatch(key):
        raise KeyUnusable(
            f"{variable} holds a space, a line end or a letter beyond ASCII, which no key has; "
            "export it again"
        )
    return key
