from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.engines import EngineError
from pipeline.engines.http.address import Address, Templates, check
from pipeline.records import Checkpoint, CheckpointError

URL = "http://127.0.0.1:8000/v1"


def checkpoint(run: str = "a run", step: int = 40, path: str = "/runs/a run/40") -> Checkpoint:
    return Checkpoint(run, step, path, "full", "")


def test_placeholders_are_filled_in_and_encoded_in_the_url_alone() -> None:
    templates = Templates("http://gpu-{step:03}:8000/{run}/v1", "{run} {step} {path}")
    check(templates.base_url, templates.model)
    assert templates.fill(checkpoint()) == Address(
        "http://gpu-040:8000/a%20run/v1", "a run 40 /runs/a run/40"
    )


@given(st.text(), st.text(min_size=1))
def test_no_name_of_a_run_or_path_leads_to_another_host(run: str, path: str) -> None:
    templates = Templates("http://127.0.0.1:8000/{run}/{path}/v1", "m")
    parts = urlsplit(templates.fill(checkpoint(run, 1, path)).url)
    assert (parts.hostname, parts.port, parts.query, parts.fragment) == ("127.0.0.1", 8000, "", "")


@pytest.mark.parametrize("run", ["a run", "b@evil", "c/evil", "", "d:80"])
def test_a_run_that_makes_no_host_is_the_checkpoints_failure(run: str) -> None:
    templates = Templates("http://{run}:8000/{step}", "m")
    check(templates.base_url, templates.model)
    with pytest.raises(CheckpointError, match="has no sound host and port; rename the run"):
        templates.fill(checkpoint(run))


def test_a_path_that_is_no_text_is_the_checkpoints_failure() -> None:
    for templates in (Templates(URL, "{path}"), Templates(f"{URL}/{{path}}", "m")):
        with pytest.raises(CheckpointError, match="no Unicode text; rename it"):
            templates.fill(checkpoint(path="/runs/\udcff"))


@pytest.mark.parametrize(
    ("base_url", "model", "why"),
    [
        (URL, "policy", r"holds \{step\} or \{path\}"),
        (f"{URL}/{{run}}", "policy", r"holds \{step\} or \{path\}"),
        (URL, "{stop}", r"model holds \{stop\}; there are \{run\}, \{step\}, \{path\}"),
        (f"{URL}/{{0}}", "{path}", r"base_url holds \{0\}"),
        (URL, "{step.real}", r"model holds \{step.real\}"),
        (URL, "{path", "model has a brace without its other one"),
        (URL, "{step:zz}", "a format after {step: is none"),
        ("127.0.0.1:8000/v1", "{path}", "no plain http:// or https:// address"),
        ("ftp://127.0.0.1/v1", "{path}", "no plain"),
        ("http:///v1", "{path}", "no plain"),
        ("http://127.0.0.1:99999/v1", "{path}", "no plain"),
        ("http://127.0.0.1/v1?key=Sesame", "{path}", "no plain"),
        ("http://me:Sesame@127.0.0.1/v1", "{path}", "no plain"),
        ("http://127.0.0.1/v1#Sesame", "{path}", "no plain"),
        ("http://[::1/v1", "{path}", "no plain"),
    ],
)
def test_templates_that_lead_nowhere_are_refused_and_no_secret_is_repeated(
    base_url: str, model: str, why: str
) -> None:
    with pytest.raises(EngineError, match=why) as told:
        check(base_url, model)
    assert "Sesame" not in str(told.value)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("base_url", [URL, "https://[::1]:8/v1", "http://gpu_1.local", f"{URL}/"])
def test_plain_addresses_pass(base_url: str) -> None:
    check(base_url, "{path}")
    assert Templates(base_url, "{path}").fill(checkpoint()).url == base_url
