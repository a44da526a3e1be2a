"""The rules of an evaluation, registered before its first result: who knows the results may not choose the margin."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from assay.broad.run.results import Results, as_json
from assay.core.errors import AssayError
from assay.runs.manifest import now

FILE = "registration.json"
TEAMS = "teams"  # who takes part in what, which says how many contrasts are planned
EVALUATORS = "evaluators"  # what teams are compared with: a weaker baseline would make claims easier
RULES = ("k", "p", "n", "ratings", "validation_cap", "margin", "bootstrap")  # settings of the protocol that decide


def rules_of(protocol: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a protocol that a verdict depends on, with teams and evaluators if given, as plain values."""
    chosen = {name: protocol.get(name) for name in RULES}
    chosen |= {name: protocol[name] for name in (TEAMS, EVALUATORS) if name in protocol}
    rules: dict[str, Any] = json.loads(json.dumps(chosen, default=_plain))
    return rules


def _plain(value: Any) -> Any:
    """A value that JSON does not know, as one that it knows."""
    return dict(value) if isinstance(value, Mapping) else str(value)


def teams_of(described: Iterable[Mapping[str, Any]]) -> dict[str, list[str]]:
    """What each team takes part in, by its letter, from the teams as a manifest describes them."""
    return {team["letter"]: sorted(team.get("parts", ())) for team in described}


def rules_hash(protocol: Mapping[str, Any]) -> str:
    """SHA-256 of the rules, which can be published with the commitment to the seed before anything is run."""
    return hashlib.sha256(json.dumps(rules_of(protocol), sort_keys=True).encode()).hexdigest()


def register(results: Results, protocol: Mapping[str, Any]) -> str:
    """Register the rules of an evaluation, or hold it to those registered once there are results; return their hash.

    Args:
        results: Folder of the evaluation.
        protocol: The settings of the protocol by name, ``teams`` (`teams_of`), and ``evaluators``, their modules as a
            manifest describes them.
    """
    if results.folder.exists("runs"):
        _refuse_changes(results, protocol)
    if not results.folder.exists("runs") or not results.folder.exists(FILE):
        record = {"written": now(), "rules": rules_of(protocol), "sha256": rules_hash(protocol)}
        results.folder.write(FILE, as_json(record))
    digest: str = results.folder.read_json(FILE)["sha256"]
    return digest


def registered(results: Results) -> dict[str, Any]:
    """The settings of the protocol to analyse by, which must have the rules that were registered."""
    manifest = results.read_manifest()
    _refuse_changes(results, _rules_in(manifest))
    protocol: dict[str, Any] = manifest["protocol"]
    return protocol


def _rules_in(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The rules that a manifest tells of."""
    teams, evaluators = teams_of(manifest.get("teams", ())), manifest.get("evaluators", {})
    return {**manifest["protocol"], TEAMS: teams, EVALUATORS: evaluators}


def _refuse_changes(results: Results, protocol: Mapping[str, Any]) -> None:
    """Raise where these rules are not those of the registration, or of the manifest of an older evaluation."""
    source = FILE if results.folder.exists(FILE) else "manifest.json"
    if not results.folder.exists(source):
        return
    record = results.folder.read_json(source)
    before, after = rules_of(record["rules"] if source == FILE else _rules_in(record)), rules_of(protocol)
    if source == FILE and record["sha256"] != rules_hash(before):
        raise AssayError(f"{results.folder.path(FILE)} was changed: its rules do not have the hash beside them")
    if EVALUATORS not in before and results.folder.exists("manifest.json"):  # registered before baselines were
        before[EVALUATORS] = results.read_manifest().get("evaluators", {})
    changed = [
        f"{name} {_shown(before[name])} to {_shown(after[name])}" for name in RULES if before[name] != after[name]
    ]
    for letter, modalities in before.get(TEAMS, {}).items():  # more of them may come: that makes no claim easier
        lacking = sorted(set(modalities) - set(after.get(TEAMS, {}).get(letter, ())))
        if lacking:
            changed.append(f"the number of contrasts, without team {letter} for {' and '.join(lacking)}")
    for modality, modules in before.get(EVALUATORS, {}).items():
        changed += _changed_modules(modality, modules, after.get(EVALUATORS, {}).get(modality, {}))
    if changed:
        raise AssayError(
            f"{results.folder.url} has results by rules registered on {record['written'][:10]}, and this would change "
            f"{', '.join(changed)}: set them back, or use another folder"
        )


def _changed_modules(modality: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """What is not as registered of the evaluators' modules for a modality, in words."""
    changes = []
    for part, registered_module in before.items():
        module = after.get(part, {})
        for what, value in registered_module.items():
            if module.get(what) != value:
                to = f"{_shown(value)} to {_shown(module.get(what, {}))}"
                changes.append(f"the {what} of the evaluators' {part} for {modality}, {to}")
                break  # another module has other parameters and another source
    return changes


def _shown(value: Any) -> str:
    """A rule as an error shows it."""
    if isinstance(value, dict):
        return ", ".join(f"{k} {v:g}" if isinstance(v, float) else f"{k} {v}" for k, v in value.items()) or "none"
    if value is None:
        return "all"
    return f"{value[:12]}…" if isinstance(value, str) and len(value) == 64 else str(value)  # a hash
