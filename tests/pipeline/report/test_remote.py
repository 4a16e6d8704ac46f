"""A page of an output that lies on an object store."""

from collections.abc import Callable
from pathlib import Path

from jobs import report
from pipeline.config import ReportConfig, SweepConfig
from pipeline.places import where
from pipeline.report import page


def test_an_output_on_a_store_gives_the_page_of_the_same_output_here(
    small: SweepConfig, sweep_here: Callable[..., object], bucket: str
) -> None:
    pages = []
    for place in (where(f"{bucket}/out"), where(small.output)):
        sweep_here(small.model_copy(update={"output": place}))
        config = ReportConfig(path=place)
        html = page.html(report.study(config, report.measured(config)))
        pages.append(html.replace(str(place), "OUT"))
    assert ReportConfig(path=where(f"{bucket}/out")).folder == Path("out-report")
    assert pages[0] == pages[1]
    secrets = ("AKIAPLANTEDKEY000000", "planted-secret", "planted-token")
    assert not [secret for secret in secrets if secret in pages[0]]
