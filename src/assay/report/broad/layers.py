"""What the plan's measures say of the layers that the teams' deep learners have learned (the plan, §5.4.2)."""

from __future__ import annotations

from assay.report.broad.evaluation import Evaluation
from assay.report.document import Block, DotChart, Failure, LineChart, Text
from assay.report.measures import section_of
from assay.runs.run import Run

INTRODUCTION = (
    "Each measure is asked of the deep learner that a team trained in condition 6 of the video task, layer by layer; "
    "lines are teams."
)


def measured_layers(e: Evaluation) -> Run | None:
    """The run of the evaluation's measures on the systems' layers; None where there is none."""
    return Run(e.files.path("measures")) if e.files.exists("measures/manifest.json") else None


def layer_blocks(e: Evaluation) -> list[Block]:
    """The results of every measure of the learned layers, as the report of a run shows them; none without measures."""
    run = measured_layers(e)
    if run is None:
        return []
    blocks: list[Block] = [Text(INTRODUCTION)]
    for label, record in run.manifest.measures.items():
        if run.summary(label).empty:
            blocks.append(Text(f"{label}: no result."))
        else:
            blocks += section_of(record.measure)(label, record, run)
    return [*blocks, *(Failure(f"{f.subject} × {f.measure}", f.error or "", f.traceback or "") for f in run.failures)]


def layer_charts(e: Evaluation) -> list[DotChart | LineChart]:
    """The charts among these results, for slides."""
    return [block for block in layer_blocks(e) if isinstance(block, (DotChart, LineChart))]
