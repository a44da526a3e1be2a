from __future__ import annotations

import numpy as np
from PIL import Image

from assay.stimuli import as_images, as_labelled


def test_a_table_in_a_file_is_data_with_paths_relative_to_it(tmp_path):
    for i in range(2):
        Image.fromarray(np.full((8, 8), i, np.uint8)).save(tmp_path / f"{i}.png")
    (tmp_path / "pics.csv").write_text("path,label\n0.png,cat\n1.png,owl\n")
    data = as_labelled(tmp_path / "pics.csv")
    assert data.shape == (1, 8, 8) and data.class_names == ("cat", "owl") and "pics.csv" in data.source
    assert len(as_images(str(tmp_path / "pics.csv"))) == 2
