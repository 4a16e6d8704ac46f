"""A server of the OpenAI protocol, asked by the standard library alone."""

import json
import os
import re
import time
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit

from hackbait.environment import EnvironmentRefused

ANSWER_BYTES = 2**22
TRIED_AGAIN = {HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.CONFLICT, HTTPStatus.TOO_MANY_REQUESTS}
"""Beside every 5xx."""
KEY = re.compile("[!-~]+")
HOST = re.compile("[A-Za-z0-9._:-]+")


class Passing(RuntimeError):
    """No answer now, for a reason that may pass."""


class Refused(RuntimeError):
    """A status that asking again would not change."""

    def __init__(self, status: int) -> None:
        super().__init__(f"status {status}")
        self.status = status


class NoRedirect(urllib.request.HTTPRedirectHandler):
    """An address that points elsewhere is refused: the key would go along."""

    def redirect_request(self, *where: Any, **more: Any) -> None:
        return None


@dataclass(frozen=True, slots=True)
class Server:
    """An address to ask, and the key to ask with, which no message holds."""

    url: str
    key: str = field(repr=False)
    pause: float
    """Seconds before the second try; they double."""

    def ask(self, route: str, body: Mapping[str, Any] | None, timeout: float, retries: int) -> Any:
        """The JSON that a POST is answered with, or a GET where there is no body.

        timeout: seconds for one try. Raises Passing after the last one, or Refused.
        """
        why = ""
        for attempt in range(retries + 1):
            if attempt:
                time.sleep(self.pause * 2 ** (attempt - 1))
            try:
                return json.loads(self._exchange(route, body, timeout))
            except HTTPError as error:
                with error:
                    status = error.code
                if status not in TRIED_AGAIN and status < HTTPStatus.INTERNAL_SERVER_ERROR:
                    raise Refused(status) from None
                why = f"status {status}"
            except TimeoutError:
                why = f"no answer in {timeout:g} s"
            except (OSError, HTTPException):
                why = "no connection, or one that broke"
            except (ValueError, RecursionError):
                why = "an answer that is torn or no JSON"
        raise Passing(f"{why}, {retries + 1} times")

    def _exchange(self, route: str, body: Mapping[str, Any] | None, timeout: float) -> bytes:
        """The bytes of one answer, in time or TimeoutError."""
        request = urllib.request.Request(
            self.url + route,
            None if body is None else json.dumps(body).encode(),
            {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"},
        )
        end, parts, size = time.monotonic() + timeout, [], 0
        opener = urllib.request.build_opener(NoRedirect)
        with opener.open(request, timeout=timeout) as answer:
            while part := answer.read1(2**16):
                parts.append(part)
                size += len(part)
                if size > ANSWER_BYTES:
                    raise ValueError("no chat completion is so long")
                if time.monotonic() > end:
                    raise TimeoutError
        return b"".join(parts)


def read_key(variable: str) -> str:
    """The judge's key, which no message holds. EnvironmentRefused."""
    key = os.environ.get(variable)
    if not key:
        raise EnvironmentRefused(f"judge_api_key_var: {variable} is not set; export {variable}=...")
    if not KEY.fullmatch(key):
        raise EnvironmentRefused(
            f"judge_api_key_var: {variable} holds a space, a line end or a letter beyond ASCII, "
            "which no key has; export it again"
        )
    return key


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
