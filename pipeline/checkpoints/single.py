"""The one checkpoint that a path names: a model that is no part of a run, as a judge's."""

from pipeline.checkpoints import LayoutError, discover
from pipeline.checkpoints.identity import architecture, can_be_asked, cheap_id
from pipeline.records import Checkpoint


def single(path: str) -> Checkpoint:
    """LayoutError, or CheckpointError, where it is none, several, torn, or cannot be asked."""
    found = discover(path)
    if len(found) > 1:
        raise LayoutError(f"{path} holds {len(found)} checkpoints; name one, {found[-1].path}")
    (one,) = found
    if one.status != "ok":
        raise LayoutError(f"{path}: {one.why}")
    if not (can_be_asked(one.path) or (one.base and can_be_asked(one.base))):
        raise LayoutError(f"{path}: it has no tokenizer with a chat template")
    return Checkpoint(
        run=one.run,
        step=one.step,
        path=str(one.path),
        kind=one.kind,
        cheap_id=cheap_id(one.path, one.base),
        base=one.base,
        architecture=architecture(one.path, one.base),
    )
