"""Novel objects: deterministic, solid, told apart by shape alone; and real ones with their angles."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from assay import AssayError
from assay.stimuli import Labelled, ObjectPictures, load_coil20, load_coil20_pictures, novel_objects
from assay.stimuli.novel_shapes import random_solid
from assay.stimuli.objects import conditions
from assay.stimuli.ray_marching import Part, Solid, render


@pytest.fixture(scope="module")
def objects():
    return novel_objects(count=3, size=24, changes=2)


def ball(radius=0.8):
    part = Part((0, 0, 0), ((1, 0, 0), (0, 1, 0), (0, 0, 1)), (0, 0, 0), radius, 0.0, 0.0, False, (0.5, 0.9))
    return Solid((part,), 0.03)


def test_the_same_arguments_give_the_same_bytes(objects):
    again = novel_objects(count=3, size=24, changes=2)
    assert np.array_equal(objects.inputs, again.inputs)
    assert objects.fingerprint == again.fingerprint != novel_objects(count=3, size=24, changes=2, seed=1).fingerprint


def test_the_first_objects_do_not_depend_on_how_many_there_are(objects):
    fewer = novel_objects(count=2, size=24, changes=2)
    assert np.array_equal(fewer.inputs, objects.inputs[: len(fewer)])


def test_all_objects_are_seen_under_the_same_conditions_each_changed_by_itself(objects):
    assert len(objects) == 3 * 9 and objects.classes == 3
    levels = objects.levels().reshape(3, 9, 3)
    assert (levels == levels[0]).all()
    changed = (levels[0] != levels[0, 0]).astype(int).tolist()
    assert changed == [[0, 0, 0], *[[1, 0, 0]] * 2, *[[0, 1, 0]] * 2, *[[0, 0, 1]] * 2, *[[1, 1, 1]] * 2]


@pytest.mark.parametrize("seed", range(5))
def test_changes_are_as_large_as_they_say(seed):
    rotation, light, color = conditions(changes=6, seed=seed)
    turned = (rotation[1:7, 0] - rotation[0, 0] + 180) % 360 - 180
    assert ((np.abs(turned) >= 20) & (np.abs(turned) <= 80)).all()
    recolored = np.abs((color[13:] - color[0] + 180) % 360 - 180)
    assert (recolored >= 45).all()
    assert (np.abs(light[:, 0]) <= 75).all()


def test_a_ball_is_a_disc_of_its_projected_radius_and_looks_the_same_from_all_sides():
    views = torch.tensor([[0.0, 0.0], [77.0, 31.0]])
    lamps = torch.zeros(2, 2)
    pictures = render(ball(), views, lamps, torch.zeros(2), 96)
    assert torch.allclose(pictures[0], pictures[1], atol=5e-3)
    covered = float((pictures[0, 0] != 0.5).float().mean())
    # A ball of radius r at distance 4 is seen as a disc of radius 4r/√(16 − r²); the frame is 2.1 wide.
    radius = 4 * 0.8 / np.sqrt(16 - 0.8**2)
    assert covered == pytest.approx(np.pi * radius**2 / 2.1**2, rel=0.04)  # pixels that are covered in part count too


def test_a_ball_is_brightest_where_it_faces_the_lamp():
    lamps = torch.tensor([[-60.0, 0.0], [60.0, 0.0], [0.0, 60.0]])
    left, right, top = render(ball(), torch.zeros(3, 2), lamps, torch.zeros(3), 32)[:, 0]
    assert left[16, 6] > left[16, 25] + 0.2
    assert torch.allclose(left, right.flip(1), atol=5e-3)
    assert top[6, 16] > top[25, 16] + 0.2


def test_the_hue_is_the_color():
    red, green, blue = render(ball(), torch.zeros(3, 2), torch.zeros(3, 2), torch.tensor([0.0, 120.0, 240.0]), 8)
    assert red[:, 4, 4].argmax() == 0 and green[:, 4, 4].argmax() == 1 and blue[:, 4, 4].argmax() == 2
    assert torch.allclose(red[0], green[1], atol=1e-5)


@pytest.mark.parametrize("number", range(8))
def test_no_ray_passes_through_a_solid(number):
    """The function of a solid never grows faster than the distance, so that marching along it is safe."""
    solid = random_solid(3, number)
    a, b = torch.randn(2, 3, 4000)
    b = a + 0.2 * b
    slope = (solid.distance(a) - solid.distance(b)).abs() / (a - b).norm(dim=0)
    assert float(slope.max()) <= 1 + 1e-4  # rounding of float32
    outside = torch.nn.functional.normalize(a, dim=0) * 1.001
    assert float(solid.distance(outside).min()) > 0


def test_edges_are_smooth():
    views, lamps, hues = torch.zeros(1, 2), torch.zeros(1, 2), torch.zeros(1)
    jagged, smooth, fine = (render(ball(), views, lamps, hues, 24, samples=n)[0] for n in (1, 2, 6))
    assert (smooth - fine).abs().mean() < 0.5 * (jagged - fine).abs().mean()


def test_pictures_of_objects_keep_their_conditions_when_chosen(objects):
    few = objects.each(1)
    assert isinstance(few, ObjectPictures) and isinstance(few, Labelled)
    assert len(few.factors["rotation"]) == 3
    assert few.fingerprint != Labelled(few.inputs, few.labels).fingerprint


def test_coil20_has_its_angles(shared_data):
    path = shared_data / "coil20" / "coil20_64.npz"
    objects = load_coil20_pictures(path)
    assert objects.shape == (1, 64, 64) and objects.classes == 20 and len(objects) == 1440
    assert objects.factors["rotation"][:3].tolist() == [0, 5, 10] and objects.factors["rotation"][71] == 355
    clip = np.stack(list(load_coil20(path).clips[3].frames()))
    assert np.allclose(objects.inputs[objects.labels == 3] / 255, clip)


def test_what_is_wrong_is_said(tmp_path):
    wrongs = [{"count": 0}, {"size": 0}, {"size": 8.5}, {"changes": -1}, {"samples": 0}, {"background": 2.0}]
    for wrong in (*wrongs, {"device": "cuda:99"}):
        (name,) = wrong
        with pytest.raises(AssayError, match=f"{name}="):
            novel_objects(**wrong)
    with pytest.raises(AssayError, match="'rotation' is 3, and needs one row for each of 2 pictures"):
        ObjectPictures(np.zeros((2, 1, 4, 4), np.uint8), np.array([0, 1]), factors={"rotation": np.arange(3)})
    with pytest.raises(AssayError, match="is not an"):
        load_coil20_pictures(tmp_path)
    np.savez(tmp_path / "a.npz", images=np.zeros((2, 3)))
    with pytest.raises(AssayError, match="not objects × views"):
        load_coil20_pictures(tmp_path / "a.npz")


def test_rounding_moves_no_pixel_by_more_than_a_level():
    """A turn of a hundred-thousandth of a degree stands for the rounding of another device."""
    views, lamps, hues = (torch.from_numpy(values).float() for values in conditions(1))
    one, other = (render(random_solid(0, 1), views + turn, lamps, hues, 32) for turn in (0, 1e-5))
    assert float((255 * (one - other)).abs().max()) < 1


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
def test_a_gpu_renders_the_same_but_for_1_in_1000_values():
    on_cpu, on_gpu = (novel_objects(count=5, size=64, changes=2, device=device).inputs for device in ("cpu", "cuda"))
    apart = np.abs(on_cpu.astype(int) - on_gpu.astype(int))
    assert (apart > 1).mean() < 1e-3
