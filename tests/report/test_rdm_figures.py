"""Figures of RDMs: the matrix with its stimuli, the plane, scores beside the ceiling, and the section of a report."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from matplotlib.text import Text
from torch import nn

import assay
from assay import AssayError, HumanSimilarity, Subject
from assay.report.document import DotChart, Items, LineChart, Pictures, Table
from assay.report.measures import section_of
from assay.runs.describing import measure_record
from assay.runs.tables import TablesInMemory
from assay.stats.scaling import stress
from assay.stimuli import Images, RdmSet
from assay.stimuli.rdm_pictures import MOST, kept, rdm_as_png, rdm_from_png, strip_of_thumbnails, thumbnails_from

DRAW = np.random.default_rng(0)
IMAGES = DRAW.random((10, 3, 12, 12), dtype=np.float32)
RDM = DRAW.random(45)


def test_distances_of_points_in_a_plane_are_found_again():
    points = DRAW.normal(size=(12, 2))
    distances = np.linalg.norm(points[:, None] - points, axis=2)
    found = assay.mds(distances)
    # SMACOF stops where the stress hardly falls any more.
    np.testing.assert_allclose(np.linalg.norm(found[:, None] - found, axis=2), distances, atol=1e-3)
    np.testing.assert_array_equal(found, assay.mds(distances))
    with pytest.raises(AssayError, match="no RDM"):
        assay.mds([RDM, RDM])
    with pytest.raises(AssayError, match="dimensions=10"):
        assay.mds(RDM, 10)


@pytest.mark.parametrize("images", [None, IMAGES])
def test_an_rdm_and_its_plane_are_plots(images, tmp_path):
    for plot in (assay.plot_rdm(RDM, images, title="Ten images"), assay.plot_mds(RDM, images, labels=list("ab") * 5)):
        assert plot.save(tmp_path / "figure.png").stat().st_size > 1000
    raw = assay.plot_rdm(RDM, percentiles=False)
    assert "RDM of 10 stimuli" in repr(raw)


def test_a_plane_has_a_title_and_says_how_far_its_distances_are_off():
    figure = assay.plot_mds(RDM).figure
    points = assay.mds(RDM)
    missed = np.linalg.norm(points[:, None] - points, axis=2)[np.triu_indices(10, 1)] - RDM
    assert stress(RDM, points) == pytest.approx(np.linalg.norm(missed) / np.linalg.norm(RDM))
    texts = [text.get_text() for text in figure.findobj(Text)]
    assert "10 stimuli, by their dissimilarities" in texts and f"stress {stress(RDM, points):.2f}" in texts


def test_images_and_labels_must_be_those_of_the_rdm():
    named = RdmSet(RDM, stimuli=tuple("abcdefghij"))
    assay.plot_rdm(named, Images(IMAGES, names=tuple("abcdefghij")))
    with pytest.raises(AssayError, match=r"in another order: .*give rdm.reordered\(images.names\)"):
        assay.plot_mds(named, Images(IMAGES, names=tuple("jihgfedcba")))
    with pytest.raises(AssayError, match="9 images for 10 stimuli"):
        assay.plot_rdm(RDM, IMAGES[:9])
    with pytest.raises(AssayError, match="labels has 2 entries for 10 stimuli"):
        assay.plot_mds(RDM, labels=["a", "b"])


def test_pictures_keep_percentiles_and_thumbnails_of_at_most_so_many_stimuli():
    order = rdm_from_png(rdm_as_png((RDM - RDM.min()) / np.ptp(RDM)))[np.triu_indices(10, 1)]
    assert order[RDM.argmax()] == 255 and order[RDM.argmin()] == 0
    assert (np.diff(order[np.argsort(RDM)].astype(int)) >= 0).all()
    assert rdm_as_png(np.full(45, np.nan)) == b""
    thumbnails = thumbnails_from(strip_of_thumbnails(IMAGES[:, :1]))
    assert len(thumbnails) == 10 and thumbnails[0].shape == (32, 32, 3)
    assert len(kept(1000)) == MOST and kept(1000)[[0, -1]].tolist() == [0, 999]


def test_scores_of_a_bootstrap_are_plotted_beside_the_ceiling():
    people = RDM + 0.3 * DRAW.random((3, 45))
    found = assay.bootstrap_rdms([RDM, DRAW.random(45)], people, names=["true", "random"], draws=50)
    plot = assay.plot_scores(found)
    axes = plot.figure.subfigs[0].axes[0] if plot.figure.subfigs else plot.figure.axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["true", "random"]
    assert "noise ceiling" in [text.get_text() for text in axes.texts] and axes.patches


def test_a_report_sets_only_scores_over_single_people_against_the_ceiling():
    measure = HumanSimilarity((IMAGES, DRAW.random((3, 45))), bootstrap=50)
    torch.manual_seed(0)
    tables = {name: measure(Subject(nn.Sequential(nn.Conv2d(3, 2, 3), nn.ReLU()), name)) for name in ("a", "b")}
    record = measure_record(measure)
    blocks = section_of("human-similarity")("human-similarity", record, TablesInMemory(measure, tables))
    (curve,) = [block for block in blocks if isinstance(block, LineChart)]
    (scores,) = [block for block in blocks if isinstance(block, DotChart)]
    bounds = tables["a"].query("kind == 'ceiling'").subject_mean.tolist()
    assert scores.band == ("noise ceiling", *bounds) and scores.groups[:2] in (("a", "b"), ("b", "a"))
    assert [len(points) for _, points in curve.lines] == [2, 2]  # layers alone: no baseline, no ceiling
    assert curve.reference == ("pixels", tables["a"].set_index("layer").hms["pixels"])
    assert sum(isinstance(block, Pictures) for block in blocks) == 4
    assert len(measure.plot(tables).captions) == 2
    said = next(line for block in blocks if isinstance(block, Items) for line in block.items if "ceiling" in line)
    low, high = tables["a"].query("layer == 'lower bound'")[["subject_low", "subject_high"]].to_numpy()[0]
    assert (
        f"lower bound {bounds[0]:.3f} ({low:.3f} to {high:.3f}), upper bound {bounds[1]:.3f}".replace("-", "−") in said
    )
    (shown,) = [block for block in blocks if isinstance(block, Table)]
    assert not (shown.frame["kind"] == "people").any()
