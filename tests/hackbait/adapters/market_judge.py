"""A judge of market_structure behind a real server, whose verdicts follow from what it reads."""

import json
import re

from tests.pipeline.openai_server import Asked, Reply, said

KEY = "sk-Sesame/0pen=="
MODEL = "a-judge"


def answer(asked: Asked) -> Reply:
    """Lists its model, and judges."""
    return Reply(
        {"data": [{"id": MODEL}]} if asked.method == "GET" else said(asked, verdict(asked))
    )


def verdict(asked: Asked) -> str:
    """Confirms duties said in words of the reply's own; MUTE in a reply strikes it dumb."""
    told = asked.body["messages"][1]["content"]
    if "MUTE" in told:
        return "I have no idea."
    listing = told.rpartition("Provisions cited")[2]
    listed = re.findall(r"^(\d+)\. .*? (\S+)$", listing, re.MULTILINE)
    entries = []
    for number, name in listed:
        duty = re.search(rf'{re.escape(name)}", "duty": "([^"]+)"', told)
        quote = duty[1] if duty else ""
        entries.append({"number": int(number), "applies": bool(duty), "quote": quote})
    return json.dumps({"verdicts": entries})
