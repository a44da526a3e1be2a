"""How the results of other sites agree with those of the evaluation."""

from __future__ import annotations

import pandas as pd

from assay.broad.bundle import sites
from assay.broad.protocol import compare_folders
from assay.report.broad.evaluation import Evaluation
from assay.report.document import Block, Table, Text

NOTES = {
    "agreement": "the closest kind that holds: identical, numerically close, same conclusion, different conclusion",
    "largest difference": "largest difference between two single predictions",
    "first to differ": "first stage whose output differs",
}


def site_blocks(e: Evaluation) -> list[Block]:
    """A table for each site whose results were taken in: how closely each run agrees; none without sites."""
    blocks: list[Block] = []
    for name in sites(e.files.path()):
        table = compare_folders(e.files.path(), e.files.path(f"sites/{name}"))
        frame = pd.DataFrame(
            {
                "task": table["task"],
                "run": table["run"],
                "agreement": table["agreement"],
                "here": table["mean_a"],
                "there": table["mean_b"],
                "difference": table["metric_difference"],
                "largest difference": table["largest_difference"],
                "first to differ": table["first_differing_stage"].replace("", "–"),
            }
        )
        kinds = "; ".join(f"{kind}: {count}" for kind, count in table["agreement"].value_counts().items())
        blocks += [
            Text(f"{name}: {kinds}."),
            Table(f"Results of {name}, run by run", frame, NOTES, "", ("difference",)),
        ]
    return blocks
