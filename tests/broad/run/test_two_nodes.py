"""An evaluation on a Ray cluster of two nodes: each run asks for what it needs, and runs go on side by side."""

from __future__ import annotations

import os
import warnings
from dataclasses import replace
from pathlib import Path

import pytest

from assay import AssayError
from assay.broad.conditions import run_specs
from assay.broad.data.twin_reviews import generated_reviews
from assay.broad.protocol import Protocol, run_protocol
from assay.broad.run.job import make_job
from assay.broad.run.processes import Order, for_cluster, work
from assay.broad.run.results import Results
from assay.broad.systems.team import Evaluators, Module, Parts, Team
from assay.runs.ray_jobs import nodes_of, patiently

pytestmark = [
    pytest.mark.ray,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]
KIT = str(Path(__file__).parents[2] / "kits")
GIB = 2**30
TEAM = Team(
    "s",
    "Team s",
    {
        "text": Parts(
            Module("bag_of_words", {"terms": 100, "weights": "binary"}),
            Module("broad_kit:Small"),
            Module("linear_svr", {"grid": {"C": [0.1]}}),
        )
    },
)
EVALUATORS = {"text": Evaluators(Module("bag_of_words", {"terms": 100}), Module("topics", {"grid": {"topics": [3]}}))}


@pytest.fixture(scope="module")
def two_nodes():
    """Two nodes of two cores, of which one has a GPU (that no module of these tests touches)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import ray
        from ray.cluster_utils import Cluster

        plain = {"num_cpus": 2, "memory": 8 * GIB, "object_store_memory": 200 * 2**20, "include_dashboard": False}
        cluster = patiently(lambda: Cluster(initialize_head=True, head_node_args=plain), ray.shutdown)
        second = {"num_cpus": 2, "num_gpus": 1, "memory": 4 * GIB, "object_store_memory": 200 * 2**20}
        patiently(lambda: cluster.add_node(**second), ray.shutdown)
        ray.init(address=cluster.address, log_to_driver=False, runtime_env={"env_vars": {"PYTHONPATH": KIT}})
        yield ray
        ray.shutdown()
        cluster.shutdown()


@pytest.fixture(autouse=True)
def kit(monkeypatch):
    monkeypatch.syspath_prepend(KIT)


def order(folder, **more) -> Order:
    job = make_job(run_specs(("s",))[-1], "text", {"s": TEAM}, EVALUATORS["text"])
    return Order("text:Overall", None, job, str(folder), str(folder / "work"), **more)


def test_a_run_asks_for_cores_memory_and_a_gpu(tmp_path, two_nodes):
    """Cores and memory as the plan says; without a word the cluster's cores are shared out among the runs."""
    (asked,) = for_cluster([order(tmp_path, threads=2, memory_bytes=3 * GIB)], nodes_of(two_nodes))
    assert (asked.resources.cpus, asked.resources.memory_bytes, asked.resources.gpus) == (2, 3 * GIB, 0)
    assert [job.resources.cpus for job in for_cluster([order(tmp_path)] * 2, nodes_of(two_nodes))] == [2, 2]
    assert [job.resources.cpus for job in for_cluster([order(tmp_path)] * 9, nodes_of(two_nodes))] == [1] * 9
    on_gpu = order(tmp_path)
    learner = Module("broad_kit:Small", {"device": "cuda"})
    (asked,) = for_cluster([replace(on_gpu, job=replace(on_gpu.job, learner=learner))], nodes_of(two_nodes))
    assert asked.resources.gpus == 1


def test_memory_that_no_node_has_is_a_sentence(tmp_path, two_nodes):
    with pytest.raises(AssayError, match=r"memory_gib=9: the largest node of the Ray cluster has 8\.0 GiB"):
        list(work([order(tmp_path, memory_bytes=9 * GIB)], ray=True))


def test_runs_and_tasks_go_on_side_by_side_on_both_nodes_with_the_results_of_one_machine(tmp_path, two_nodes):
    reviews = generated_reviews(count=200, restaurants=20, seed=3)
    protocol = Protocol(k=2, p=0.6, n=60, ratings=("Overall", "Food"), bootstrap=50, cores=1, memory_gib=1.0)
    secret, processes = "an open secret, for tests", os.cpu_count() or 1
    for place, ray in (("there", True), ("here", False)):
        folder = str(tmp_path / place)
        run_protocol(None, reviews, [TEAM], EVALUATORS, folder, secret, protocol, processes, ray=ray)
    here, there = Results(str(tmp_path / "here")), Results(str(tmp_path / "there"))
    records = [
        there.read_run(f"text:{rating}", f"{n}s" if n > 1 else "1")
        for rating in ("Overall", "Food")
        for n in range(1, 7)
    ]
    assert [record.status for record in records] == ["done"] * 12
    assert len({record.machine for record in records}) == 2, "both nodes had work"
    overlaps = [(a, b) for a in records for b in records if a.began < b.began < a.ended]
    assert overlaps, "runs go on side by side"
    assert any(a.task != b.task for a, b in overlaps), "tasks too"
    for record in records:
        a, b = (results.predictions(record.task, record.run, 2) for results in (here, there))
        assert (a == b).all()
