"""The HTTP service without its index, and on a full disk: no answer is late or a defect, and nothing stored is lost."""

import time
from collections.abc import Callable
from pathlib import Path

import neardup as client_library
from neardup.serve.messages import CheckAnswer

from tests.support.command import Neardup, embedded
from tests.support.faults.fault_table import Row, find_said, make_row
from tests.support.faults.small_disks import mounted
from tests.support.languages import HINDI, SAMPLED
from tests.support.sample_texts import STORIES
from tests.support.servers import free_port, redis_server
from tests.support.service import get, serving

DEADLINE_SECONDS = 1.0
MOST_SECONDS = DEADLINE_SECONDS + 2.0  # a slow machine, and two processes beside
Make = Callable[[str], Neardup]


def test_it_waits_for_redis_and_answers_without_it(
    make_neardup: Make, tmp_path: Path, record_row: Callable[[Row], None]
) -> None:
    folder, listen = tmp_path / "redis", f"127.0.0.1:{free_port()}"
    folder.mkdir()
    neardup = make_neardup(embedded(index=f"unix://{folder}/redis.sock"))
    client = client_library.Client(f"http://{listen}", attempts=1)
    with serving(neardup, listen, NEARDUP_SERVE__DEADLINE_SECONDS=str(DEADLINE_SECONDS)) as (_, systemd, log), client:
        systemd.wait_for("STATUS=waiting: Redis does not answer")
        assert get(listen, "readyz")[0] == 503
        with redis_server(folder):
            systemd.wait_for("STATUS=serving")
            client.put(1, language="hi", text=STORIES[HINDI][0])
            assert client.check(language="hi", text=STORIES[HINDI][0]).verdict == "copy"
        began = time.monotonic()
        answer = client.check(language="hi", text=STORIES[HINDI][0])
        assert time.monotonic() - began < MOST_SECONDS, "the answer was late"
        assert answer.verdict == "copy", "the ledger alone has what the index lacks"
        with redis_server(folder):
            assert not client.check(language="hi", text=STORIES[HINDI][0]).estimated
        said = find_said("the service waits", log.read_text(encoding="utf-8"))
    record_row(make_row("serve: Redis away at its start", 1, said))


def test_a_full_disk_refuses_a_story_and_loses_none(
    make_neardup: Make, tmp_path: Path, record_row: Callable[[Row], None]
) -> None:
    listen = f"127.0.0.1:{free_port()}"
    neardup = make_neardup(embedded())
    stored: dict[int, CheckAnswer] = {}
    with mounted(tmp_path / "disk", "1300k") as disk:
        ledger = disk.folder / "neardup.db"
        client = client_library.Client(f"http://{listen}", attempts=1)
        with serving(neardup, listen, NEARDUP_LEDGER__PATH=str(ledger)) as (_, systemd, _), client:
            systemd.wait_for("STATUS=serving")
            texts = [(language, text) for language in SAMPLED for text in STORIES[language]]
            for story_id, (language, text) in enumerate(texts):
                try:
                    stored[story_id] = client.put(story_id, language=language, text=text)
                except client_library.ServiceError as error:
                    refused = error
                    break
            else:
                raise AssertionError("the disk was never full")
            assert refused.fail_open
            assert refused.problem is not None
            assert (refused.problem.status, "disk" in refused.problem.detail) == (503, True), refused.problem
            disk.remount("size=50m")
            assert client.put(story_id, language=language, text=text).words
            for kept in [*stored, story_id]:
                assert client.story(kept).words > 0, f"story {kept} was answered for and is lost"
    record_row(make_row("serve: disk full", 1, find_said("disk is full", refused.problem.detail), in_flight=1))
