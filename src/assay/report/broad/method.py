"""What a reader needs to judge and repeat an evaluation: partitions, method, context, commands and machine."""

from __future__ import annotations

import pandas as pd

from assay.broad.conditions import CONTRASTS
from assay.broad.run.warden import PLAIN
from assay.report.broad import text
from assay.report.broad.evaluation import Evaluation
from assay.report.document import (
    Block,
    Code,
    Facts,
    Flow,
    Items,
    Table,
    Text,
)


def partition_table(e: Evaluation) -> Table:
    """Sizes and hashes of the partitions, and how many runs used each."""
    partitions = []
    for task in e.manifest["tasks"]:
        records = [r for (name, _), r in e.records.items() if name == task["name"] and r.partition]
        same = sum(r.partition == task["partition"] for r in records)
        partitions.append(
            {
                "task": task["name"],
                "training": task["training"],
                "validation": task["validation"],
                "test": task["test"],
                "runs on it": f"{same} of {len(records)}",
                "partition": task["partition"],
            }
        )
    return Table("Partitions", pd.DataFrame(partitions), {"partition": "SHA-256 of folds, validation and test set"})


def partition_blocks(e: Evaluation) -> list[Block]:
    """Commitment to the secret seed, the hashes of the partitions drawn from it, and that of the rules."""
    facts = (
        ("commitment (SHA-256 of the seed)", str(e.manifest["commitment"])),
        ("rules registered before the first result (SHA-256)", str(e.manifest.get("registration") or "")),
        ("manifest", e.digest),
    )
    return [
        Text(
            "Partitions are drawn from a secret seed. Its commitment can be published before the evaluation; when the "
            "seed is revealed, anyone can verify it and draw the same partitions."
        ),
        Facts(tuple((name, value) for name, value in facts if value)),
        partition_table(e),
    ]


def glossary_table() -> Table:
    """The six conditions: what each is made of, and what it shows."""
    return Table("The six conditions", pd.DataFrame(text.GLOSSARY, columns=["condition", "made of", "what it shows"]))


def method_blocks() -> list[Block]:
    """Claims, conditions, protocol, metrics and statistics of the evaluation."""
    flow = Flow("How a prediction is made (blue: the evaluators', orange: the team's)", text.FLOW_OF_CONDITIONS)
    contrasts = Facts((("", "Contrasts"), *((c.name, c.question) for c in CONTRASTS)))
    rules = (Text(text.PROTOCOL), Items(text.METRICS), Items(text.STATISTICS))
    return [Items(text.CLAIMS), flow, glossary_table(), contrasts, *rules]


def published_table() -> Table:
    """Published results, recalled from papers and not checked."""
    columns = ["system", "data", "recalled, not checked", "source"]
    return Table("Published results (recalled, not checked)", pd.DataFrame(text.PUBLISHED, columns=columns))


def context_blocks() -> list[Block]:
    """Results that others published, with the warnings they need."""
    return [Text(text.PUBLISHED_WARNING), published_table(), Text(text.LDA_WARNING)]


def reproduction_blocks(e: Evaluation) -> list[Block]:
    """The commands that repeat the evaluation, the versions of its software, and the machine."""
    machine = e.manifest.get("environment", {})
    command = " ".join(str(word) for word in machine.get("command", []))
    lines = [
        "# the recorded plan, with the same seed and data",
        "assay broad run plan.yaml",
        "# the tables again from the recorded predictions, without training",
        f"assay broad analyze {e.name}",
        "# run by run against the folder of another site",
        f"assay broad compare {e.name} OTHER",
    ]
    facts = [("command", command), ("python", str(machine.get("python", "")))]
    facts.append(("packages", ", ".join(f"{k} {v}" for k, v in machine.get("packages", {}).items())))
    if machine.get("git"):
        dirty = " with changes" if machine["git"].get("dirty") else ""
        facts.append(("code", f"{machine['git']['commit'][:12]}{dirty}"))
    facts += [(name, str(value)) for name, value in hardware(e)]
    return [Code("\n".join(lines)), Facts(tuple((k, v) for k, v in facts if v))]


def hardware(e: Evaluation) -> list[tuple[str, str]]:
    """Names and values that describe the machine; what was not recorded is left out."""
    h = e.manifest.get("environment", {}).get("hardware", {})
    memory = f"{h['memory_bytes'] / 2**30:.0f} GiB" if h.get("memory_bytes") else ""
    facts = [
        ("platform", str(h.get("platform", ""))),
        ("processor", f"{h.get('processor', '')}, {h.get('cores', '?')} cores" if h else ""),
        ("memory", memory),
        ("accelerators", ", ".join(h.get("gpus", [])) or "none"),
        ("systems kept apart by", _apart(str(e.manifest.get("isolation", "")))),
    ]
    return [row for row in facts if row[1]]


def _apart(isolation: str) -> str:
    """What kept systems apart, and what that does not do."""
    if isolation == PLAIN:
        return f"{isolation}, which can read and write all that the account of the evaluation can"
    return isolation
