"""The gauges of verdicts in /metrics."""

from neardup.core.verify.tiers import PARTIAL
from neardup.pipeline.gauges import _set_verdict_gauges
from neardup.records import Verdict
from neardup.telemetry.metrics import IN_CONTEXT, KEPT_PAIRS, PRECISION, VERDICTS

from tests.support.builders import flag_pair, ledger_in_memory
from tests.support.languages import ODIA
from tests.support.verdicts import add_copies, give_verdict, undo


def test_gauges_count_verdicts_and_drop_undone_ones() -> None:
    db = ledger_in_memory()
    add_copies(db, 1, 2, 3)
    give_verdict(db, {(1, 2), (1, 3), (2, 3)}, Verdict.TEMPLATE)
    add_copies(db, 4)
    flag_pair(db, 8, 9, PARTIAL, language=ODIA)
    decision = give_verdict(db, {(8, 9)}, Verdict.NOT_SIMILAR)
    _set_verdict_gauges(db)
    samples = {
        (sample.name, *sample.labels.values()): sample.value
        for gauge in (VERDICTS, PRECISION, KEPT_PAIRS, IN_CONTEXT)
        for metric in gauge.collect()
        for sample in metric.samples
        if sample.value or sample.name == "neardup_precision"
    }
    assert samples == {
        ("neardup_verdicts", "HINDI", "exact", "template"): 3,
        ("neardup_verdicts", "ODIA", "partial", "not_similar"): 1,
        ("neardup_precision", "HINDI", "exact"): 1,
        ("neardup_precision", "ODIA", "partial"): 0,
        ("neardup_kept_pairs", "HINDI", "template"): 2,
        ("neardup_flags_in_context", "HINDI", "template"): 1,
    }
    undo(db, decision)
    _set_verdict_gauges(db)
    assert not [
        sample for metric in PRECISION.collect() for sample in metric.samples if "ODIA" in sample.labels.values()
    ]
    for gauge in (VERDICTS, PRECISION, KEPT_PAIRS, IN_CONTEXT):
        gauge.clear()
    db.close()
