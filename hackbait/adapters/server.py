"""A server of the OpenAI protocol, asked by the standard library alone."""

import json
import time
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError

ANSWER_BYTES = 2**22
TRIED_AGAIN = {HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.CONFLICT, HTTPStatus.TOO_MANY_REQUESTS}
"""Beside every 5xx."""


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
