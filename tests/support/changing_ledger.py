"""A ledger of a few stories to which everything happens, in any order: a state machine for laws of what it derives."""

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from neardup.ledger import stories, story_rows, verdicts
from neardup.ledger.stories import remove_all
from neardup.records import Fingerprinted, Kind, Skip, Skipped, Spans, Story, Verdict

from tests.support.builders import commit, fingerprint_of, flag_spans, ledger_in_memory
from tests.support.languages import HINDI

STORIES = 6
WORDS = 40  # of each story
LATEST = 2**63 - 1  # the time of a story without one
ids = st.integers(1, STORIES)
pairs = st.sampled_from([(a, b) for a in range(1, STORIES + 1) for b in range(a + 1, STORIES + 1)])
authors = st.sampled_from([None, "7", "8"])
times = st.sampled_from([None, 1, 2, 3])
changes = st.fixed_dictionaries({}, optional={"author_id": authors, "published_at": times})


class ChangingLedger(RuleBasedStateMachine):
    """Stories are written, edited, removed and decided on; a subclass flags pairs, and states what holds."""

    def __init__(self) -> None:
        super().__init__()
        self.db = ledger_in_memory()
        self.texts = 0
        self.decisions: list[int] = []

    def teardown(self) -> None:
        self.db.close()

    @initialize(facts=st.lists(st.tuples(authors, times), min_size=STORIES, max_size=STORIES))
    def write_all(self, facts: list[tuple[str | None, int | None]]) -> None:
        for story_id, (author, time) in enumerate(facts, 1):
            self.write(story_id, author, time)

    @rule(story_id=ids, author=authors, time=times)
    def write(self, story_id: int, author: str | None, time: int | None) -> None:
        """Add a story, or edit it."""
        self.texts += 1
        made = fingerprint_of(self.texts.to_bytes(16), words=WORDS)
        commit(self.db, Fingerprinted(Story(story_id, HINDI, author_id=author, published_at=time), made, None))

    @rule(story_id=ids, change=changes)
    def touch(self, story_id: int, change: dict[str, str | int | None]) -> None:
        """Change what is known of a story with an unchanged text."""
        if known := story_rows.describe(self.db, [story_id]):
            facts = {column: known[story_id][column] for column in ("author_id", "published_at")}
            commit(self.db, Skipped(Story(story_id, HINDI, **facts | change), Skip.UNCHANGED))

    def flag_pair(self, pair: tuple[int, int], kind: Kind, spans_a: Spans, spans_b: Spans) -> None:
        for story_id in pair:
            if not stories.read_stored_versions(self.db, [story_id]):
                self.write(story_id, None, None)
        flag_spans(self.db, *pair, kind, spans_a, spans_b)

    @rule(pair=pairs)
    def verify_again(self, pair: tuple[int, int]) -> None:
        """The next nomination verifies the flag again."""
        self.db.execute("UPDATE flags SET estimated = 1 WHERE a = ? AND b = ?", pair)

    @rule(
        story_id=ids,
        verdict=st.sampled_from(Verdict),
        moderator=st.sampled_from(["Asha", "रवि"]),
        of_whole_case=st.booleans(),
    )
    def decide(self, story_id: int, verdict: Verdict, moderator: str, of_whole_case: bool) -> None:
        column = "case_id = ?1" if of_whole_case else "a = ?1 OR b = ?1"
        query = f"SELECT flag_id FROM flags WHERE ({column}) AND status <> 'withdrawn'"
        if chosen := [row[0] for row in self.db.execute(query, (story_id,))]:
            seen = verdicts.identify_state(self.db, chosen)
            self.decisions.append(verdicts.decide(self.db, chosen, verdict, "", moderator, seen))

    @rule(n=st.integers(0, 9))
    def undo(self, n: int) -> None:
        if self.decisions:
            decision = self.decisions.pop(n % len(self.decisions))
            if verdicts.list_of_decision(self.db, decision) and not verdicts.find_built_upon(self.db, decision):
                seen = verdicts.identify_state(self.db, verdicts.list_flags(self.db, decision))
                verdicts.undo(self.db, decision, "Asha", seen)

    @rule(story_id=ids, forgotten=st.booleans())
    def remove(self, story_id: int, forgotten: bool) -> None:
        if forgotten:
            stories.forget(self.db, story_id)
        else:
            commit(self.db, Skipped(Story(story_id, HINDI), Skip.EMPTY))

    @rule()
    def restart(self) -> None:
        remove_all(self.db, "v2", "")
