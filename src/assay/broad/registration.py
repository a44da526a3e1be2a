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
RULES = ("k", "p", "n", "ratings", "validation_cap", "margin", "bootstrap")  # settings of the protocol that decide


def rules_of(protocol: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a protocol that a verdict depends on, and the teams where they are given, as plain values."""
    chosen = {name: protocol.get(name) for name in RULES} | ({TEAMS: protocol[TEAMS]} if TEAMS in protocol else {})
    rules: dict[str, Any] = json.loads(json.dumps(chosen, default=dict))
    return rules


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
        protocol: The settings of the protocol by name, and ``teams`` (`teams_of`).
    """
    if results.folder.exists("runs"):
        _refuse_changes(results, protocol)
    if not results.folder.exists("runs") or not results.folder.exists(FILE):
        record = {"written": now(), "rules": rules_of(protocol), "sha256": rules_hash(protocol)}
        results.folder.write(FILE, as_json(record))
    return rules_hash(protocol)


def registered(results: Results) -> dict[str, Any]:
    """The settings of the protocol to analyse by, which must have the rules that were registered."""
    manifest = results.read_manifest()
    protocol: dict[str, Any] = manifest["protocol"]
    _refuse_changes(results, protocol | {TEAMS: teams_of(manifest.get("teams", ()))})
    return protocol


def _refuse_changes(results: Results, protocol: Mapping[str, Any]) -> None:
    """Raise where these rules are not those of the registration, or of the manifest of an older evaluation."""
    source = FILE if results.folder.exists(FILE) else "manifest.json"
    if not results.folder.exists(source):
        return
    record = results.folder.read_json(source)
    before, after = rules_of(record["rules"] if source == FILE else record["protocol"]), rules_of(protocol)
    if source == FILE and record["sha256"] != rules_hash(before):
        raise AssayError(f"{results.folder.path(FILE)} was changed: its rules do not have the hash beside them")
    changed = [
        f"{name} {_shown(before[name])} to {_shown(after[name])}" for name in RULES if before[name] != after[name]
    ]
    for letter, modalities in before.get(TEAMS, {}).items():  # more of them may come: that makes no claim easier
        lacking = sorted(set(modalities) - set(after.get(TEAMS, {}).get(letter, ())))
        if lacking:
            changed.append(f"the number of contrasts, without team {letter} for {' and '.join(lacking)}")
    if changed:
        raise AssayError(
            f"{results.folder.url} has results by rules registered on {record['written'][:10]}, and this would change "
            f"{', '.join(changed)}: set them back, or use another folder"
        )


def _shown(value: Any) -> str:
    """A rule as an error shows it."""
    if isinstance(value, dict):
        return ", ".join(f"{k} {v:g}" for k, v in value.items())
    return "all" if value is None else str(value)
