import numpy as np
import PIL.Image
import pytest
import SimpleITK as sitk
import torch

from regnet.errors import InputError
from regnet.io import read_image, read_labels, write_image
from regnet.spatial import Grid


def pixels(dtype, top):
    return (np.arange(35).reshape(5, 7) * top / 34).astype(dtype)


@pytest.mark.parametrize(
    ("suffix", "dtype", "top"),
    [(".png", "u1", 255), (".png", "u2", 60000), (".tif", "u1", 255), (".tiff", "u2", 60000), (".tif", "f4", 0.5)],
)
def test_a_picture_is_read_as_itk_reads_it(tmp_path, suffix, dtype, top):
    path = tmp_path / f"a{suffix}"
    PIL.Image.fromarray(pixels(dtype, top)).save(path)
    image = read_image(path)
    other = sitk.ReadImage(str(path))
    assert image.data.dtype == torch.float32 and image.data.shape == (1, 7, 5)
    assert np.array_equal(image.data[0].numpy().T, sitk.GetArrayFromImage(other))
    place = image.grid.to_world(torch.tensor([2.0, 3.0])) * torch.tensor([-1.0, -1.0])  # RAS -> LPS
    assert place.tolist() == pytest.approx(other.TransformIndexToPhysicalPoint((2, 3)))


def test_the_spacing_is_the_callers_the_files_or_one(tmp_path):
    PIL.Image.fromarray(pixels("u1", 255)).save(tmp_path / "a.png", dpi=(254, 127))
    PIL.Image.fromarray(pixels("u1", 255)).save(tmp_path / "a.tif", dpi=(254, 127))
    PIL.Image.fromarray(pixels("u1", 255)).save(tmp_path / "b.png")
    assert read_image(tmp_path / "a.png").grid.spacing == pytest.approx((0.1, 0.2), rel=1e-3)
    assert read_image(tmp_path / "a.tif").grid.spacing == pytest.approx((0.1, 0.2), rel=1e-3)
    assert read_image(tmp_path / "a.png", spacing=0.5).grid.spacing == (0.5, 0.5)
    assert read_image(tmp_path / "a.png", spacing=(0.5, 2.0)).grid.spacing == (0.5, 2.0)
    assert read_image(tmp_path / "b.png").grid.spacing == (1, 1)
    assert read_image(tmp_path / "b.png").grid.orientation == "LP"


def test_a_label_picture_keeps_its_integers(tmp_path):
    PIL.Image.fromarray(pixels("u1", 34)).save(tmp_path / "a.png")
    labels = read_labels(tmp_path / "a.png")
    assert labels.data.dtype == torch.uint8
    assert labels.data.unique().tolist() == list(range(35))


@pytest.mark.parametrize("suffix", (".png", ".tif"))
def test_a_picture_comes_back(tmp_path, suffix):
    grid = Grid((7, 5), torch.diag(torch.tensor([-0.5, -0.25, 1])))
    data = torch.from_numpy(pixels("f4", 68).T.copy())
    write_image(tmp_path / f"a{suffix}", data, grid)
    back = read_image(tmp_path / f"a{suffix}")
    assert torch.equal(back.data[0], data)
    assert back.grid.spacing == pytest.approx((0.5, 0.25), rel=1e-3)


def test_what_a_picture_cannot_hold_is_refused(tmp_path):
    flat = Grid((7, 5), torch.diag(torch.tensor([-1.0, -1, 1])))
    with pytest.raises(InputError, match="0 to 65535"):
        write_image(tmp_path / "a.png", torch.full((7, 5), -1.0), flat)
    with pytest.raises(InputError, match="geometry"):
        write_image(tmp_path / "a.png", torch.ones(7, 5), Grid((7, 5), torch.eye(3)))
    with pytest.raises(InputError, match="geometry"):
        write_image(tmp_path / "a.tif", torch.ones(7, 5, 2), Grid((7, 5, 2), torch.eye(4)))
    assert not list(tmp_path.iterdir())


def test_a_bad_picture_is_one_line_that_names_it(tmp_path):
    PIL.Image.fromarray(np.zeros((5, 7, 3), "u1")).save(tmp_path / "colour.png")
    PIL.Image.fromarray(pixels("u1", 255)).save(tmp_path / "whole.png")
    noise = np.random.default_rng(0).integers(0, 255, (60, 70)).astype("u1")
    PIL.Image.fromarray(noise).save(tmp_path / "noise.png")
    whole = (tmp_path / "noise.png").read_bytes()
    (tmp_path / "cut.png").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "text.png").write_text("hello")
    (tmp_path / "empty.png").write_bytes(b"")
    pages = [PIL.Image.fromarray(pixels("u1", 255)) for _ in range(2)]
    pages[0].save(tmp_path / "pages.tif", save_all=True, append_images=pages[1:])
    for name, reason in {
        "colour.png": "colour",
        "cut.png": "truncated or damaged",
        "text.png": "damaged",
        "empty.png": "empty",
        "pages.tif": "2 pages",
        "missing.png": "no such file",
    }.items():
        with pytest.raises(InputError, match=f"{name}.*{reason}"):
            read_image(tmp_path / name)


def test_a_picture_beyond_all_measure_is_refused_before_it_is_unpacked(tmp_path):
    PIL.Image.new("1", (20000, 20000)).save(tmp_path / "a.png")
    with pytest.raises(InputError, match=r"a\.png: too many pixels to be a slice"):
        read_image(tmp_path / "a.png")
