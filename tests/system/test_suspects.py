"""A run over all languages marks the stories that are not what their listing or their page pretends."""

from collections.abc import Callable
from pathlib import Path

from neardup.languages import SHIPPED

from tests.support.command import Neardup, embedded
from tests.support.languages import SAMPLED, TEXTS

Make = Callable[..., Neardup]
MAX_BYTES = 10_000


def test_wrong_labels_and_limits_are_counted(make_neardup: Make, tmp_path: Path) -> None:
    labels = dict(zip(SAMPLED, [*SAMPLED[1:], SAMPLED[0]], strict=True))
    rows, pages = ["id,language,path"], tmp_path / "pages"
    pages.mkdir()
    for n, (language, label) in enumerate(labels.items()):
        (pages / f"{n}.html").write_text(f"<p>{TEXTS[language] * 2}</p>", encoding="utf-8")
        (pages / f"large-{n}.html").write_text(f"<p>{TEXTS[language] * 2}</p><!--{'x' * MAX_BYTES}", encoding="utf-8")
        rows += [f"{n},{label},{n}.html", f"{100 + n},{language},{n}.html", f"{200 + n},{language},large-{n}.html"]
    (tmp_path / "manifest.csv").write_text("\n".join(rows), encoding="utf-8")
    config = embedded(tmp_path / "manifest.csv", pages).replace('body = "article .story, div.post-body"', "")
    neardup = make_neardup(config.replace("[content]", f"[content]\nmax_bytes = {MAX_BYTES}"))
    ran = neardup("backfill", "--json")
    assert ran.facts["fingerprinted"] == 3 * len(SAMPLED), "a mark changed an outcome"
    marks = {
        (one["language"], one["detail"], one["example"]): one["stories"]
        for one in neardup("status", "--json").facts["marks"]
    }
    expected = {
        (label, SHIPPED[language].script, n): 1
        for n, (language, label) in enumerate(labels.items())
        if SHIPPED[language].script != SHIPPED[label].script
    }
    expected |= {(language, "size", 200 + n): 1 for n, language in enumerate(SAMPLED)}
    assert marks == expected
    assert "mislabelled: TAMIL Devanagari 1, such as story 3" in neardup("status").out
