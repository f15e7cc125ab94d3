"""Laws: an invalid configuration is refused in one line that names the file and the key; the environment overrides the
file; a language's own table changes that language only; a secret that others can read is warned of, and not shown.
"""

import os
from collections.abc import Callable
from datetime import time, timedelta
from itertools import islice, product
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from neardup.config import Config, load
from neardup.config.loading import list_exposed_secrets
from neardup.config.schedule import Daily
from neardup.core.languages import LANGUAGES
from neardup.errors import Misuse
from neardup.records import Language

from tests.support.command import Neardup, embedded
from tests.support.languages import CODES
from tests.support.paths import SAMPLES

MINIMAL = '[source]\nmanifest = "list.csv"\n[content]\nurl = "file:pages"\n'
ATHENA = {"database": '"d"', "output": '"s3://r/"', "backfill_sql": '"SELECT 1"', "daily_sql": '"SELECT 1 WHERE 1 > ?"'}
every_language = pytest.mark.parametrize("language", LANGUAGES)


@pytest.fixture(autouse=True)
def _no_overrides(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("NEARDUP_"):
            monkeypatch.delenv(name)


def read(folder: Path, text: str) -> Config:
    path = folder / "neardup.toml"
    path.write_text(text, encoding="utf-8")
    return load(path)


def refusal(folder: Path, text: str) -> str:
    with pytest.raises(Misuse) as refused:
        read(folder, text)
    message = str(refused.value)
    assert refused.value.exit_code == 2
    assert len(message.splitlines()) == 1, f"not one line: {message}"
    return message


def athena(**changes: str | None) -> str:
    lines = [f"{key} = {value}" for key, value in (ATHENA | changes).items() if value is not None]
    return "\n".join(['[content]\nurl = "s3://pages"\n[source]\nkind = "athena"', *lines])


@pytest.mark.parametrize(("section", "line", "message"), [
    ("run", "workerz = 3", "run.workerz: unknown key"), ("bananas", "x = 1", "bananas: unknown key"),
    ("run", 'workers = "many"', "run.workers: "), ("run", "workers = 0", "run.workers: "),
    ("run", "workers = 1.5", "run.workers: "), ("run", "queue = []", "run.queue: "),
    ("run", "batch = -1", "run.batch: "), ("detection", "max_matches = 0", "detection.max_matches: "),
    ("run", 'schedule = "25:00"', "run.schedule: not a schedule: '25:00'"), ("run", "schedule = 5", "run.schedule"),
    ("run", 'schedule = "02:00 Mars/Olympus"', "run.schedule: not a schedule: "),
    ("run", 'schedule = "every day"', "run.schedule: not a duration: 'day'"),
    ("run", 'schedule = "every 0s"', "run.schedule: an interval must be longer than zero"),
    ("run", "schedule = 02:00:00", "run.schedule"), ("run", "overlap = -5", "run.overlap: "),
    ("run", 'overlap = "an hour"', "run.overlap: not a duration: 'an hour'"),
    ("run", 'overlap = "-1h"', "run.overlap: not a duration: "), ("run", 'overlap = "9999999999d"', "run.overlap: "),
    ("run", "shutdown_seconds = 0", "run.shutdown_seconds: "),
    ("detection", "hamming = 8", "detection: 8 bands find every pair of Hamming distance 0 to 7, not 8"),
    ("detection", "hamming = -1", "bits that differ must be fewer than the bands"),
    ("detection.HINDI", "hamming = 8", "detection.languages.HINDI: 8 bands find"),
    ("detection", "passage_words = 11", "detection.passage_words: "),
    ("detection", 'same_author = "show"', "detection.same_author: "),
    ("detection.HINDI", 'same_author = "keep"', "detection.languages.HINDI.same_author: unknown key"),
    ("detection.HINDI", "haming = 2", "detection.languages.HINDI.haming: unknown key"),
    ("detection.KLINGON", "hamming = 2", "KLINGON"), ("extract", 'strip = ".a"', "extract.strip: "),
    ("extract", 'body = "p["', "extract: not a CSS selector: 'p['"),
    ("extract", 'strip = [".a", "::::"]', "extract: not a CSS selector: '::::'"),
    ("index", 'url = "http://there"', "index.url: "), ("index", 'url = "sqlite:/elsewhere"', "index.url: "),
    ("index", 'url = "redis://[::1"', "index.url: its host or port cannot be read"),
    ("reference.content", 'url = "file:x"\nendpoint = "http://[::1"', "reference.content.endpoint: its host or port"),
    ("index", 'layout = "mine"', "index.layout: "), ("metrics", "listen = 9108", "metrics.listen: "),
    ("metrics", 'listen = "9108"', "metrics.listen: not HOST:PORT: '9108'"),
    ("metrics", 'listen = "localhost:99999"', "metrics.listen: not HOST:PORT: "),
    ("metrics", 'listen = "localhost:http"', "metrics.listen: not HOST:PORT: "),
    ("metrics", 'listen = "127.0.0..1:9108"', "metrics.listen: not HOST:PORT: "),
    ("metrics", f'listen = "{"a" * 64}:9108"', "metrics.listen: not HOST:PORT: "),
    ("export", 'format = "doc"', "export.format: "),
    ("export", 'path = "s3://bucket"', "export.path: not s3://BUCKET/KEY"),
    ("export", 'webhook = "example.com/x"', "export.webhook: "),
    ("export", 'webhook = "ftp://x/y"', "export.webhook: "),
    ("ledger", "path = 3", "ledger.path: "),
])  # fmt: skip
def test_an_invalid_key_is_refused_by_name(tmp_path: Path, section: str, line: str, message: str) -> None:
    refused = refusal(tmp_path, f"{MINIMAL}[{section}]\n{line}\n")
    assert refused.startswith(f"{tmp_path / 'neardup.toml'}: ")
    assert message in refused


def test_every_wrong_key_is_named_at_once(tmp_path: Path) -> None:
    run, others = "[run]\nworkers = 0\nworkerz = 3\n", "[detection.HINDI]\nbands = 99\n[bananas]\n"
    refused = refusal(tmp_path, f'[source]\nmanifest = "list.csv"\n{run}{others}[languages.TAMIL]\ncodes = [1]\n')
    section_keys = "run.workers", "run.workerz", "detection.languages.HINDI.bands", "languages.TAMIL.codes.0"
    wrong = ("content", "bananas", *section_keys)
    missing = [key for key in wrong if f"{tmp_path / 'neardup.toml'}: {key}: " not in refused]
    assert not missing, f"{refused} does not name {missing}"


@pytest.mark.parametrize("line", [
    '[index]\nurl = "redis:user:hidden@host"', '[content]\nendpoint = "http://me:hidden@box"\nurl = "file:x"',
    '[export]\nwebhook = "chat.example/hidden"', '[review]\ntoken = "hidden"', '[review]\ntoken = ["hidden"]',
    '[meaning]\nkey = ["hidden"]', '[meaning]\nkind = "url"\nkey = "hidden"',
])  # fmt: skip
def test_a_refusal_does_not_show_a_secret(tmp_path: Path, line: str) -> None:
    content = "" if "[content]" in line else '[content]\nurl = "file:x"\n'
    assert "hidden" not in refusal(tmp_path, f'[source]\nmanifest = "list.csv"\n{content}{line}\n')


SINHALA = """
[languages.SINHALA]
codes = ["si"]
script = "Sinhala"
golden = "ගම් බස්"
"""


@pytest.mark.parametrize(("old", "new", "message"), [
    ('script = "Sinhala"', "", "languages: SINHALA is not shipped with the package: it needs script"),
    ('["si"]', '["hi"]', "languages: SINHALA: the code 'hi' belongs to HINDI"),
    ('["si"]', '["SI"]', "languages.SINHALA.codes.0: must be an ISO 639 code, two or three letters a to z"),
    ('["si"]', "[]", "languages.SINHALA.codes: Expected `array` of length >= 1"),
    ('"Sinhala"', '"sinhala"', "languages.SINHALA.script: must be the name of a script, such as Devanagari"),
    ('"Sinhala"', '"Sinhala"\ndirection = "up"', "languages.SINHALA.direction: must be 'ltr' or 'rtl'"),
    ('"Sinhala"', '"Sinhala"\nfont = "Noto"', "languages.SINHALA.font: unknown key"),
    ('"Sinhala"', '"Sinhala"\nfonts = ["a; b"]', "languages.SINHALA.fonts.0: must be the name of a font"),
    ("ගම් බස්", "। ।", "languages.SINHALA.golden: a golden text must have words"),
    (".SINHALA", ".S", "languages.S: must be a name of 2 to 31 letters A to Z or underscores"),
    ("[languages.SINHALA]", "[languages.HINDI]", "languages: SINHALA: the code 'si' belongs to HINDI"),
])  # fmt: skip
def test_an_invalid_language_is_refused_in_one_line(tmp_path: Path, old: str, new: str, message: str) -> None:
    other = SINHALA if new == "[languages.HINDI]" else ""
    assert refusal(tmp_path, MINIMAL + other + SINHALA.replace(old, new)) == f"{tmp_path / 'neardup.toml'}: {message}"


def test_more_languages_than_a_byte_can_number_are_refused(tmp_path: Path) -> None:
    names = ("".join(letters) for letters in islice(product("ABCDEFGH", repeat=3), 256 - len(LANGUAGES)))
    tables = (SINHALA.replace("SINHALA", f"X{name}").replace('"si"', f'"{name.lower()}"') for name in names)
    assert refusal(tmp_path, MINIMAL + "".join(tables)).endswith(": languages: 256 languages are more than 255")


@pytest.mark.parametrize(("text", "message"), [
    ("", "source"), ("[source", "bad TOML: "), ("source = 3\ncontent = 4", "source: "),
    ('[source]\n[content]\nurl = "file:x"', 'source: kind = "manifest" needs manifest'),
    ('[source]\nkind = "ftp"\n[content]\nurl = "file:x"', "source.kind: "),
    (MINIMAL.replace("file:pages", "http://x"), "content: url: 'http://x' is neither"),
    (MINIMAL.replace("file:pages", "pages"), "content: url: 'pages' is neither"),
    (MINIMAL + 'key = "{name}"', "content: key: '{name}' may hold"),
    (MINIMAL + 'key = "{"', "content: key: '{' may hold"),
    (MINIMAL + 'key = "{id[0]}"', "content: key: '{id[0]}' may hold"),
    (MINIMAL + "max_bytes = 0", "content.max_bytes: "),
    *((athena(**{key: None}), f'source: kind = "athena" needs {key}') for key in ATHENA),
    (athena(database=None, output=None), 'source: kind = "athena" needs database and output'),
    (athena(daily_sql='"SELECT 1"'), "source: daily_sql needs a ? where the watermark goes"),
])  # fmt: skip
def test_an_invalid_file_is_refused_with_the_reason(tmp_path: Path, text: str, message: str) -> None:
    refused = refusal(tmp_path, text)
    assert refused.startswith(f"{tmp_path / 'neardup.toml'}: ")
    assert message in refused


def test_an_unreadable_file_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(Misuse, match=r"cannot read the configuration .*absent\.toml: No such file"):
        load(tmp_path / "absent.toml")
    with pytest.raises(Misuse, match="cannot read the configuration"):
        load(tmp_path)
    (tmp_path / "latin.toml").write_bytes(b'x = "\xe9"')
    with pytest.raises(Misuse, match=r"latin\.toml: bad TOML"):
        load(tmp_path / "latin.toml")


@pytest.mark.parametrize(("name", "value", "message"), [
    ("NEARDUP_RUN__WORKERZ", "3", "run.workerz: unknown key"), ("NEARDUP_RUN__WORKERS", "many", "run.workers: "),
    ("NEARDUP_DETECTION__HAMMING", "8", "not 8: a whole band must stay untouched"),
    ("NEARDUP_DETECTION__HINDI__HAMMING", "8", "not 8: a whole band must stay untouched"),
    ("NEARDUP_EXTRACT__STRIP", "['.a']", "extract.strip: must be a list, which a variable holds as JSON"),
    ("NEARDUP_", "3", "unknown variable NEARDUP_"),
    ("NEARDUP_WORKERS", "3", "unknown variable NEARDUP_WORKERS: write NEARDUP_<SECTION>__<KEY>"),
    ("NEARDUP_RUNS__WORKERS", "3", "unknown variable NEARDUP_RUNS__WORKERS"),
])  # fmt: skip
def test_an_invalid_variable_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str, message: str
) -> None:
    monkeypatch.setenv(name, value)
    assert message in refusal(tmp_path, MINIMAL)


def test_the_file_of_the_samples_spells_out_the_defaults(tmp_path: Path) -> None:
    config = load(SAMPLES / "config.toml")
    assert (config.source.manifest, config.content.url) == (SAMPLES / "manifest.csv", f"file:{SAMPLES / 'stories'}")
    assert (config.index.url, config.index.layout) == ("sqlite:", "documented")
    assert (config.detection.hamming, config.detection.max_matches) == (3, 50)
    assert (config.run.workers, config.run.queue, config.run.batch) == (64, 512, 512)
    assert (config.run.schedule, config.run.overlap) == (Daily(time(2)), timedelta(hours=1))
    assert config.metrics.listen == "127.0.0.1:9108"
    minimal = read(tmp_path, MINIMAL)
    for section in ("index", "detection", "run", "metrics"):
        assert getattr(minimal, section) == getattr(config, section), f"[{section}] differs from the defaults"
    assert minimal.content.key == config.content.key


def test_the_environment_overrides_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for key, value in {
        "RUN__WORKERS": "64", "RUN__SCHEDULE": "03:30 Asia/Kolkata", "RUN__OVERLAP": "90m", "EXPORT__FORMAT": "jsonl",
        "EXTRACT__STRIP": '[".share", "#ads"]', "SOURCE__MANIFEST": "other.csv", "DETECTION__HAMMING": "1",
        "CONTENT__PATH_STYLE": "true", "INDEX__URL": "redis://there:6379/1", "LEDGER__PATH": "/srv/ledger.db",
    }.items():  # fmt: skip
        monkeypatch.setenv(f"NEARDUP_{key}", value)
    config = read(tmp_path, MINIMAL + "[run]\nworkers = 3\nqueue = 5\n[extract]\nstrip = ['.mine']\n")
    assert (config.run.workers, config.run.queue) == (64, 5), "a key without a variable must keep the file's value"
    assert config.run.schedule == Daily(time(3, 30), ZoneInfo("Asia/Kolkata"))
    assert (config.run.overlap, config.export.format) == (timedelta(minutes=90), "jsonl")
    assert config.extract.strip == (".share", "#ads")
    assert config.source.manifest == tmp_path / "other.csv"
    assert (config.detection.hamming, config.content.path_style) == (1, True)
    assert (config.index.url, config.ledger.path) == ("redis://there:6379/1", Path("/srv/ledger.db"))


@every_language
@pytest.mark.parametrize("name", ["{}", "{iso}"])
def test_a_languages_table_changes_that_language_only(tmp_path: Path, language: Language, name: str) -> None:
    table = f"[detection.{name.format(language, iso=CODES[language])}]\nhamming = 2\n"
    general = 'hamming = 4\nmax_matches = 9\nsame_author = "keep"'
    detection = read(tmp_path, f"{MINIMAL}[detection]\n{general}\n{table}").detection
    assert {n: detection.of(n).hamming for n in LANGUAGES} == dict.fromkeys(LANGUAGES, 4) | {language: 2}
    assert {detection.of(n).max_matches for n in LANGUAGES} == {9}, "keys that the table lacks are not inherited"


@every_language
def test_a_variable_overrides_a_languages_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, language: Language
) -> None:
    monkeypatch.setenv(f"NEARDUP_DETECTION__{language}__HAMMING", "2")
    detection = read(tmp_path, f"{MINIMAL}[detection.{language}]\nhamming = 1\nmax_matches = 7\n").detection
    assert (detection.of(language).hamming, detection.of(language).max_matches) == (2, 7)
    assert {detection.of(n).hamming for n in LANGUAGES if n != language} == {3}


def test_relative_paths_start_at_the_files_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    (tmp_path / "neardup.toml").write_text(MINIMAL + '[export]\npath = "flags.csv"\n', encoding="utf-8")
    secrets = {"SERVE__TOKENS": "t", "SERVE__AUTHOR_KEY": "a", "REVIEW__MODERATORS": "m", "LEDGER__PROOF_KEY": "p"}
    for name, value in secrets.items():
        monkeypatch.setenv(f"NEARDUP_{name}", value)
    config = load(Path("../neardup.toml"))
    pages = Path(config.content.url.removeprefix("file:"))
    named = config.serve.tokens, config.serve.author_key, config.review.moderators, config.ledger.proof_key
    listed = (config.source.manifest, config.ledger.path, config.export.path, pages, *named)
    paths = [path for path in listed if path]
    assert all(isinstance(path, Path) and path.is_absolute() for path in paths)
    expected = [tmp_path / name for name in ("list.csv", "var/neardup.db", "flags.csv", "pages", *secrets.values())]
    assert [Path(path).resolve() for path in paths] == expected


def test_absolute_paths_and_s3_urls_are_kept(tmp_path: Path) -> None:
    text = '[source]\nmanifest = "/srv/list.csv"\n[content]\nurl = "{}"\n[export]\npath = ""\n'
    config = read(tmp_path, text.format("file:///srv/pages"))
    assert (config.source.manifest, config.content.url) == (Path("/srv/list.csv"), "file:/srv/pages")
    assert config.export.path is None
    assert read(tmp_path, text.format("s3://bucket/prefix")).content.url == "s3://bucket/prefix"
    assert read(tmp_path, text.format("file:x").replace('""', '"s3://flags/a.csv"')).export.path == "s3://flags/a.csv"
    assert read(tmp_path, athena()).source.daily_sql == "SELECT 1 WHERE 1 > ?"


@pytest.mark.parametrize(("export", "file_format"), [
    ("", "csv"), ('path = "flags.html"', "html"), ('path = "s3://b/flags.XLSX"', "xlsx"), ('path = "flags"', "csv"),
    ('path = "flags.csv"\nformat = "jsonl"', "jsonl"),
])  # fmt: skip
def test_an_exports_format_is_named_or_from_its_suffix(tmp_path: Path, export: str, file_format: str) -> None:
    assert read(tmp_path, f"{MINIMAL}[export]\n{export}\n").export.path_format == file_format


SECRETS = {
    "index.url": '[index]\nurl = "redis://user:hidden@host:6379"\n',
    "review.token": '[review]\ntoken = "hidden-hidden-hidden"\n',
    "export.webhook": '[export]\nwebhook = "https://chat.example/hidden"\n',
}
PLAIN = '[index]\nurl = "redis://host:6379"\n[review]\nlisten = "127.0.0.1:1"\n[export]\npath = "flags.csv"\n'


@pytest.fixture
def written(tmp_path: Path) -> Callable[[str, int], Path]:
    def write(text: str, mode: int) -> Path:
        path = tmp_path / "config.toml"
        path.write_text(text, encoding="utf-8")
        path.chmod(mode)
        return path

    return write


@pytest.mark.parametrize("key", SECRETS)
def test_a_secret_readable_by_others_is_reported_by_key(key: str, written: Callable[[str, int], Path]) -> None:
    assert list_exposed_secrets(written(SECRETS[key], 0o644)) == [key]
    assert list_exposed_secrets(written(SECRETS[key], 0o640)) == []


def test_a_password_in_a_urls_query_is_a_secret(written: Callable[[str, int], Path]) -> None:
    assert list_exposed_secrets(written('[index]\nurl = "unix:///redis.sock?password=hidden"\n', 0o644)) == [
        "index.url"
    ]


def test_a_url_that_cannot_be_read_is_a_secret_if_it_names_a_user(written: Callable[[str, int], Path]) -> None:
    """A variable may override it."""
    for url, keys in (("redis://[::1", []), ("redis://user:hidden@[::1", ["index.url"])):
        assert list_exposed_secrets(written(f'[index]\nurl = "{url}"\n', 0o644)) == keys


def test_a_file_without_secrets_may_be_world_readable(written: Callable[[str, int], Path]) -> None:
    assert list_exposed_secrets(written(PLAIN, 0o644)) == []


def test_commands_warn_of_the_key_without_the_secret(neardup: Neardup) -> None:
    neardup.configure(embedded() + SECRETS["review.token"])
    for command in ("backfill", "status"):
        ended = neardup(command)
        assert ended.code == 0, ended.err
        assert "review.token" in ended.err and "can read a secret" in ended.err
        assert "hidden" not in ended.out + ended.err
    (neardup.folder / "config.toml").chmod(0o600)
    assert "can read a secret" not in neardup("status").err
