"""Laws of permissions over HTTP: a permitted copy is clear, an ended one a copy, and a wrong permission is refused."""

from pathlib import Path
from typing import Any

import neardup
import pytest
from neardup.option_values import Right
from neardup.serve.client import ServiceError
from neardup.serve.tokens import new_token
from yarl import URL

from tests.support.languages import SAMPLED
from tests.support.sample_texts import STORIES
from tests.support.service import configuration, http_service, problem_of

LANGUAGE = SAMPLED[0]
TEXT, OTHER = STORIES[LANGUAGE][:2]
BY_RAVI: Any = {"language": LANGUAGE, "text": f"{OTHER} {TEXT}", "author_id": "ravi"}


async def test_a_copy_is_clear_while_it_is_permitted(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens.toml"
    secret = new_token(tokens, "platform", frozenset(Right))
    other = new_token(tokens, "reader", frozenset({Right.CHECK, Right.STORE}))
    config = configuration(tmp_path, deadline_seconds=30, tokens=tokens)
    async with http_service(config) as (client, _), neardup.AsyncClient(str(client.make_url("")), secret) as caller:
        for story_id, author, text in ((1, "asha", TEXT), (2, "meera", OTHER)):
            await caller.put(story_id, language=LANGUAGE, text=text, author_id=author)
        assert (await caller.check(**BY_RAVI)).verdict == "copy"

        entered = await caller.enter_permission(granted_by="asha", story_id=1, granted_to="ravi", licence="CC BY")
        assert (entered.state, entered.entered_by, entered.story_id) == ("in_force", "platform", 1)
        everything = await caller.enter_permission(granted_by="meera", until="2999-01-01")
        checked = await caller.put(3, **BY_RAVI)
        assert (checked.verdict, checked.similarity) == ("clear", 0.0)
        assert {match.story_id: match.permission_id for match in checked.matches} == {1: 1, 2: 2}
        by_kamala = await caller.check(**BY_RAVI | {"author_id": "kamala"})
        assert (by_kamala.verdict, {match.permission_id for match in by_kamala.matches}) == ("copy", {None, 2})
        assert {match.status for match in (await caller.matches(3)).matches} == {"permitted"}
        assert (await caller.story(3)).similarity == 0

        listed = await caller.permissions(limit=1)
        assert (listed.total, listed.permissions) == (2, [everything])
        assert (await caller.permissions(first=1)).permissions == [entered]
        assert (await caller.permissions(author_id="ravi", story_id=1)).permissions == [entered]
        serial = await caller.enter_permission(granted_by="asha", serial="नदी का घर")
        assert serial.serial == "नदी का घर" and (await caller.revoke_permission(3)).state == "revoked"
        revoked = await caller.revoke_permission(1)
        assert (revoked.state, revoked.revoked_by) == ("revoked", "platform")
        assert await caller.permission(1) == revoked and (await caller.permissions()).permissions == [everything]
        found = {match.story_id: match.status for match in (await caller.matches(3)).matches}
        assert found == {1: "open", 2: "permitted"}
        assert (await caller.check(**BY_RAVI)).verdict == "copy"

        for name, arguments in (
            ("not_rights_holder", {"granted_by": "ravi", "story_id": 1, "granted_to": "ravi"}),
            ("unknown_story", {"granted_by": "asha", "story_id": 9}),
            ("own_text", {"granted_by": "asha", "granted_to": "asha"}),
            ("ended_term", {"granted_by": "asha", "until": "2020-01-01"}),
            ("duplicate", {"granted_by": "meera"}),
            ("unclear", {"granted_to": "ravi"}),
            ("unknown_catalogue", {"catalogue": "old"}),
        ):
            with pytest.raises(ServiceError) as refused:
                await caller.enter_permission(**arguments)
            problem = refused.value.problem
            assert problem is not None and problem.reason == name and not problem.fail_open, name
        for number, status in ((1, 409), (99, 404)):
            with pytest.raises(ServiceError) as refused:
                await caller.revoke_permission(number)
            assert refused.value.problem is not None and refused.value.problem.status == status
        assert (await caller.permissions(ended=True)).permissions[1:] == [everything, revoked], "a refusal is stored"

        headers = {"Authorization": f"Bearer {other}"}
        path, body = URL("/v1/permissions"), {"granted_by": "asha"}
        assert (await problem_of(client, "POST", str(path), json=body, headers=headers))[0] == 403
        assert (await problem_of(client, "DELETE", str(path / "2"), headers=headers))[0] == 403
        wrong = body | {"until": "soon", "to": "ravi"}
        headers = {"Authorization": f"Bearer {secret}"}
        status, found_wrong = await problem_of(client, "POST", str(path), json=wrong, headers=headers)
        assert (status, {error["where"] for error in found_wrong["errors"]}) == (422, {"until", "to"})
