from __future__ import annotations

import hashlib
import json

import pytest

from assay import AssayError
from assay.broad.protocol import Protocol
from assay.broad.registration import FILE, register, registered, rules_hash, rules_of
from assay.broad.run.results import Results, RunRecord, as_json

WORDS = {"module": "bag_of_words", "parameters": {"terms": 500}, "source": "a" * 64}
TOPICS = {"module": "topics", "parameters": {"grid": {"topics": [5, 10]}}, "source": "b" * 64}
BASELINE = {"text": {"extractor": WORDS, "classifier": TOPICS}}


def settings(teams=None, evaluators=None, **changes):
    further = {"teams": teams, "evaluators": evaluators}
    return vars(Protocol(**changes)) | {name: value for name, value in further.items() if value is not None}


def started(tmp_path, **changes):
    """An evaluation whose rules are registered, and whose first run is done."""
    results = Results(str(tmp_path))
    protocol = settings(**changes)
    further = {"teams": [], "evaluators": protocol.get("evaluators", {})}
    written = json.loads(json.dumps({k: v for k, v in protocol.items() if k not in further}, default=dict))
    results.write_manifest({"written": "2026-01-02T10:00", "protocol": written, "tasks": [], **further})
    register(results, protocol)
    results.write_run(RunRecord("video", "1", "done"))
    return results


def test_the_margin_is_registered_before_the_first_result_with_a_hash_of_all_rules(tmp_path):
    results = Results(str(tmp_path))
    digest = register(results, settings(margin={"MAP": 0.03, "RMSE": 0.02}))
    record = results.folder.read_json(FILE)
    assert record["rules"]["margin"] == {"MAP": 0.03, "RMSE": 0.02} and record["sha256"] == digest
    assert hashlib.sha256(json.dumps(record["rules"], sort_keys=True).encode()).hexdigest() == digest
    assert not results.folder.exists("runs")


def test_before_there_are_results_the_rules_may_still_change(tmp_path):
    results = Results(str(tmp_path))
    first = register(results, settings())
    assert register(results, settings(margin={"MAP": 0.05, "RMSE": 0.05})) != first
    assert results.folder.read_json(FILE)["rules"]["margin"]["RMSE"] == 0.05


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"margin": {"MAP": 0.02, "RMSE": 0.1}}, "margin MAP 0.02, RMSE 0.02 to MAP 0.02, RMSE 0.1"),
        ({"bootstrap": 200}, "bootstrap 1000 to 200"),
        ({"ratings": ("Food",)}, r"ratings all to \['Food'\]"),
    ],
)
def test_once_there_are_results_a_changed_rule_is_refused_and_named(tmp_path, changes, named):
    results = started(tmp_path)
    with pytest.raises(AssayError, match=f"this would change {named}: set them back"):
        register(results, settings(**changes))
    assert register(results, settings(limit_s=5.0, iteration=2, draft=False)) == rules_hash(settings())


def test_a_margin_changed_by_hand_in_the_manifest_is_refused_by_the_analysis(tmp_path):
    results = started(tmp_path)
    assert registered(results)["margin"]["RMSE"] == 0.02
    manifest = results.read_manifest()
    manifest["protocol"]["margin"]["RMSE"] = 0.2
    results.write_manifest(manifest)
    with pytest.raises(AssayError, match=r"margin MAP 0.02, RMSE 0.02 to MAP 0.02, RMSE 0.2"):
        registered(results)


def test_a_registration_changed_by_hand_is_noticed(tmp_path):
    results = started(tmp_path)
    record = results.folder.read_json(FILE)
    record["rules"]["margin"]["RMSE"] = 0.2
    results.folder.write(FILE, as_json(record))
    with pytest.raises(AssayError, match="do not have the hash beside them"):
        registered(results)


def test_an_older_evaluation_is_held_to_its_manifest(tmp_path):
    results = started(tmp_path)
    results.folder.remove(FILE)
    assert registered(results)["margin"]["MAP"] == 0.02
    with pytest.raises(AssayError, match="registered on 2026-01-02"):
        register(results, settings(margin={"MAP": 0.5, "RMSE": 0.02}))
    register(results, settings())
    assert results.folder.exists(FILE)


def test_a_team_that_is_left_out_once_there_are_results_is_refused_for_it_would_shrink_the_family(tmp_path):
    results = started(tmp_path, teams={"n": ["text", "video"], "s": ["text"]})
    with pytest.raises(AssayError, match="change the number of contrasts, without team n for video: set them back"):
        register(results, settings(teams={"n": ["text"], "s": ["text"]}))
    with pytest.raises(AssayError, match="without team n for text and video"):
        register(results, settings(teams={"s": ["text"]}))
    register(results, settings(teams={"n": ["text", "video"], "s": ["text"], "t": ["text"]}))


WEAKER = [
    (
        "extractor",
        {"parameters": {"terms": 5}},
        "parameters of the evaluators' extractor for text, terms 500 to terms 5",
    ),
    (
        "classifier",
        {"module": "ridge", "parameters": {}},
        "module of the evaluators' classifier for text, topics to ridge",
    ),
    (
        "classifier",
        {"source": "c" * 64},
        "source of the evaluators' classifier for text, bbbbbbbbbbbb… to cccccccccccc…",
    ),
]


@pytest.mark.requirement("A9")
@pytest.mark.parametrize(("part", "changes", "named"), WEAKER, ids=["parameters", "module", "source"])
@pytest.mark.parametrize("age", ["", "registered without them", "without registration"])
def test_a_baseline_cannot_be_weakened_once_there_are_results(tmp_path, part, changes, named, age):
    results = started(tmp_path, evaluators=BASELINE)
    if age == "registered without them":
        rules = rules_of(settings())
        results.folder.write(FILE, as_json({"written": "2026-01-02", "rules": rules, "sha256": rules_hash(rules)}))
    elif age:
        results.folder.remove(FILE)
    weaker = {"text": BASELINE["text"] | {part: BASELINE["text"][part] | changes}}
    with pytest.raises(AssayError, match=f"this would change the {named}: set them back, or use another folder"):
        register(results, settings(evaluators=weaker))
    further = BASELINE | {"video": {"extractor": WORDS, "classifier": TOPICS}}
    register(results, settings(evaluators=further))
    if not age:
        results.write_manifest(results.read_manifest() | {"evaluators": weaker})
        with pytest.raises(AssayError, match=f"this would change the {named}"):
            registered(results)
        with pytest.raises(AssayError, match="the evaluators' extractor for text, bag_of_words to none"):
            register(results, settings(evaluators={}))


def test_the_hash_is_that_of_the_registration_also_when_a_team_joins(tmp_path):
    results = started(tmp_path, teams={"n": ["text"]})
    joined = settings(teams={"n": ["text"], "s": ["text"]})
    assert register(results, joined) == rules_hash(settings(teams={"n": ["text"]})) != rules_hash(joined)


@pytest.mark.parametrize("margin", [{"MAP": -0.02}, {"RMSE": float("inf")}, {"RMSE": float("nan")}, {"rmse": 0.02}])
def test_a_margin_is_a_number_above_0_for_a_metric_that_there_is(margin):
    with pytest.raises(AssayError, match="give a number above 0 for each of MAP, RMSE"):
        Protocol(margin=margin)


def test_a_variance_is_not_told_from_a_handful_of_draws():
    with pytest.raises(AssayError, match="bootstrap=2 draws are too few"):
        Protocol(bootstrap=2)
