"""The notebooks of the documentation run from top to bottom, and show what they say."""

from __future__ import annotations

import warnings
from pathlib import Path

import nbformat
import pytest

FOLDER = Path(__file__).parents[1] / "docs" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def executed(path: Path, folder: Path) -> nbformat.NotebookNode:
    """Run a notebook in a kernel of its own, which works in an empty folder; an error in a cell is raised."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the packages that run notebooks
        from nbclient import NotebookClient

        notebook = nbformat.read(path, as_version=4)
        client = NotebookClient(
            notebook,
            timeout=None,
            startup_timeout=600,
            kernel_name="python3",
            resources={"metadata": {"path": str(folder)}},
        )
        client.execute()
    return notebook


def outputs(notebook: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    return [output for cell in notebook.cells for output in cell.get("outputs", ())]


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_shows_pictures_tables_and_no_warning(path, tmp_path):
    shown = outputs(executed(path, tmp_path))
    assert not [output.text for output in shown if output.output_type == "stream" and output.name == "stderr"]
    kinds = {kind for output in shown for kind in output.get("data", {})}
    assert {"image/png", "text/html", "text/plain"} <= kinds
    plain = [output.data["text/plain"] for output in shown if "text/plain" in output.get("data", {})]
    assert max(map(len, plain)) < 2000 and not [text for text in plain if "array(" in text or "tensor(" in text]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_without_its_outputs(path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert not outputs(notebook) and all(cell.get("execution_count") is None for cell in notebook.cells)
    assert "widgets" not in notebook.metadata
