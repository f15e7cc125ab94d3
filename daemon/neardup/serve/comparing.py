"""The operation `compare`."""

import asyncio
from dataclasses import asdict

from neardup.app import ServiceParts
from neardup.query.compare import common_of
from neardup.query.evidence import evidence, thresholds_of
from neardup.serve.answers import CompareAnswer, CopiedPassage, Scores
from neardup.serve.lanes import Deadline
from neardup.serve.requests import CompareRequest
from neardup.serve.texts import compared_story


async def compare(parts: ServiceParts, request: CompareRequest, deadline: Deadline) -> CompareAnswer:
    """POST /v1/compare.  Raises as `texts.compared_story` does."""
    a, b = await asyncio.gather(compared_story(parts, request.a), compared_story(parts, request.b))
    common = await parts.reader.do(common_of, a, b)
    found = await asyncio.to_thread(evidence, a, b, thresholds_of(parts.config.detection, a, b), common)
    return CompareAnswer(
        kind=found.kind,
        scores=Scores.model_validate(found, from_attributes=True),
        share_a=found.share_a or 0.0,
        share_b=found.share_b or 0.0,
        passages=[CopiedPassage.model_validate(asdict(passage)) for passage in found.passages],
        took_ms=round(1000 * deadline.taken, 1),
    )
