import gzip
import resource

import nibabel as nib
import numpy as np
import pytest
import torch

from regnet.errors import InputError
from regnet.io import as_image, check_image, read_header, read_image, read_labels, voxels, write_image
from regnet.spatial import Grid
from tests.spatial.worlds import fixed_grid

OBLIQUE = fixed_grid(3).affine.numpy()


def save(path, array, affine=OBLIQUE, codes=(1, 1), **header):
    image = nib.Nifti1Image(array, affine, dtype=array.dtype)
    image.set_sform(affine, codes[0])
    image.set_qform(affine, codes[1])
    for key, value in header.items():
        image.header[key] = value
    nib.save(image, path)
    return path


def noise(*shape):
    return np.random.default_rng(0).normal(100, 20, shape).astype(np.float32)


@pytest.mark.parametrize("suffix", (".nii", ".nii.gz", ".mgz"))
def test_an_image_comes_back_in_its_place(tmp_path, suffix):
    grid = fixed_grid(3)
    data = torch.from_numpy(noise(*grid.shape))
    write_image(tmp_path / f"new/a{suffix}", data, grid)
    back = read_image(tmp_path / f"new/a{suffix}")
    assert back.data.dtype == torch.float32 and back.data.is_contiguous()
    assert torch.equal(back.data[0], data)
    assert back.grid.matches(grid, 1e-4)
    assert back.path == tmp_path / f"new/a{suffix}"


def test_slope_and_intercept_are_applied_once(tmp_path):
    raw = np.array([[[0, 100]]], dtype=np.int16).repeat(3, 0).repeat(4, 1)
    stored = nib.Nifti1Image(raw, np.eye(4))
    stored.header.set_slope_inter(2, -1024)
    nib.save(stored, tmp_path / "a.nii")
    # nibabel scales on saving: put the raw numbers back under the slope
    bytes_ = bytearray((tmp_path / "a.nii").read_bytes())
    bytes_[352:] = raw.tobytes(order="F")
    (tmp_path / "a.nii").write_bytes(bytes_)
    image = read_image(tmp_path / "a.nii")
    assert image.data[0, 0, 0].tolist() == [-1024, -824]
    write_image(tmp_path / "b.nii", image.data, image)
    again = nib.load(tmp_path / "b.nii")
    assert again.header.get_data_dtype() == np.float32
    assert again.header["scl_slope"] in (0, 1) or np.isnan(again.header["scl_slope"])
    assert np.array_equal(np.asarray(again.dataobj), image.data[0].numpy())


@pytest.mark.parametrize(
    ("values", "given", "expected"),
    [
        ([0, 255], torch.int64, np.uint8),
        ([0, 2035], torch.int64, np.int16),
        ([-1, 7], torch.int64, np.int16),
        ([0, 70000], torch.int64, np.int32),
        ([0, 3], torch.int16, np.int16),
        ([0, 3], torch.int32, np.int32),
        ([-3, 3], torch.int8, np.int8),
        ([0, 1], torch.bool, np.uint8),
        ([0.5, 3], torch.float64, np.float32),
        ([0.5, 3], torch.bfloat16, np.float32),
    ],
)
def test_the_type_on_disk_is_the_own_or_the_smallest_sufficient(tmp_path, values, given, expected):
    data = torch.tensor(values).to(given).reshape(2, 1, 1).expand(2, 3, 4)
    grid = Grid((2, 3, 4), torch.eye(4))
    write_image(tmp_path / "a.nii.gz", data, grid)
    stored = nib.load(tmp_path / "a.nii.gz")
    assert stored.header.get_data_dtype() == expected
    assert np.array_equal(np.asarray(stored.dataobj)[:, 0, 0], data[:, 0, 0].double().numpy())


@pytest.mark.parametrize("dtype", (np.uint8, np.int8, np.int16, np.uint16, np.int32, np.uint32))
def test_a_label_map_keeps_its_values_and_its_type(tmp_path, dtype):
    top = np.iinfo(dtype).max
    array = np.array([0, 1, 5, top], dtype=dtype).reshape(2, 2, 1).repeat(3, 2)
    labels = read_labels(save(tmp_path / "a.nii.gz", array))
    assert not labels.data.is_floating_point()
    assert np.array_equal(labels.data[0].numpy().astype(np.int64), array.astype(np.int64))
    write_image(tmp_path / "b.nii.gz", labels.data, labels, dtype=labels.stored_dtype)
    back = nib.load(tmp_path / "b.nii.gz")
    assert back.header.get_data_dtype() == dtype
    assert np.array_equal(np.asarray(back.dataobj), array)


def test_labels_stored_as_floats_or_wide_integers_become_small_integers(tmp_path):
    array = np.array([0, 1, 2035, 3], dtype=np.float64).reshape(2, 2, 1)
    labels = read_labels(save(tmp_path / "a.nii", np.repeat(array, 2, 2)))
    assert labels.data.dtype == torch.int16
    wide = save(tmp_path / "b.nii", np.repeat(array, 2, 2).astype(np.int64))
    write_image(tmp_path / "c.nii", read_labels(wide).data, labels, dtype=np.int64)
    assert nib.load(tmp_path / "c.nii").header.get_data_dtype() == np.int16
    with pytest.raises(InputError, match=r"d\.nii: label values must be whole numbers"):
        read_labels(save(tmp_path / "d.nii", noise(3, 4, 5)))
    with pytest.raises(InputError, match=r"e\.nii: .*32 bits"):
        write_image(tmp_path / "e.nii", torch.full((2, 2, 2), 2**40), labels)
    assert not (tmp_path / "e.nii").exists()


def test_trailing_axes_of_one_are_dropped(tmp_path):
    volume = read_image(save(tmp_path / "a.nii", noise(6, 5, 4, 1)))
    assert volume.data.shape == (1, 6, 5, 4) and volume.grid.ndim == 3
    write_image(tmp_path / "b.nii", volume.data, volume)
    assert nib.load(tmp_path / "b.nii").shape == (6, 5, 4)
    assert np.allclose(nib.load(tmp_path / "b.nii").affine, OBLIQUE, atol=1e-5)


@pytest.mark.parametrize("shape", [(6, 5), (6, 5, 1), (6, 5, 1, 1)])
def test_a_slice_is_a_2d_image_and_goes_back_to_its_place(tmp_path, shape):
    affine = np.array([[-2.0, 0.5, 0, 4], [0.7, 3, 0, 5], [0, 0, 4, 60], [0, 0, 0, 1]])
    image = read_image(save(tmp_path / "a.nii", noise(*shape), affine, codes=(1, 0)))
    assert image.data.shape == (1, 6, 5)
    assert np.allclose(image.grid.affine.numpy(), [[-2, 0.5, 4], [0.7, 3, 5], [0, 0, 1]])
    assert image.grid.orientation == "LA"
    write_image(tmp_path / "b.nii", image.data, image)
    back = nib.load(tmp_path / "b.nii")
    assert back.shape == ((6, 5) if len(shape) == 2 else (6, 5, 1))
    assert np.allclose(back.affine, affine)


def test_a_slice_as_mgz_is_a_2d_image_too(tmp_path):
    nib.save(nib.MGHImage(noise(6, 5, 1), np.diag([-2.0, 3, 4, 1])), tmp_path / "a.mgz")
    image = read_image(tmp_path / "a.mgz")
    assert image.grid.shape == (6, 5)
    write_image(tmp_path / "b.nii.gz", image.data, image)
    write_image(tmp_path / "b.mgz", image.data.to(torch.int64), image)
    for name in ("b.nii.gz", "b.mgz"):
        assert nib.load(tmp_path / name).shape == (6, 5, 1)
        assert np.allclose(nib.load(tmp_path / name).affine, np.diag([-2.0, 3, 4, 1]))


def spoiled(tmp_path, kind):
    whole = save(tmp_path / "whole.nii.gz", noise(20, 20, 20)).read_bytes()
    plain = save(tmp_path / "whole.nii", noise(20, 20, 20)).read_bytes()
    path = tmp_path / f"{kind}.nii.gz"
    if kind == "empty":
        path.write_bytes(b"")
    elif kind == "truncated":
        path.write_bytes(whole[: len(whole) // 2])
    elif kind == "headless":
        path.write_bytes(whole[:60])
    elif kind == "text":
        path.write_text("hello, this is no image" * 40)
    elif kind == "plain":
        path = tmp_path / "plain.nii"
        path.write_bytes(plain[: len(plain) // 2])
    elif kind == "flipped":
        middle = len(whole) // 2
        path.write_bytes(whole[:middle] + bytes(64) + whole[middle + 64 :])
    elif kind == "suffix":
        path = tmp_path / "suffix.jpg"
        path.write_bytes(whole)
    elif kind == "folder":
        path.mkdir()
    elif kind == "series":
        save(path, noise(5, 6, 4, 2))
    elif kind == "vectors":
        save(path, noise(5, 6, 4, 1, 3))
    elif kind == "colour":
        rgb = np.zeros((5, 6, 4), dtype=[("R", "u1"), ("G", "u1"), ("B", "u1")])
        nib.save(nib.Nifti1Image(rgb, np.eye(4)), path)
    elif kind == "complex":
        save(path, noise(5, 6, 4).astype(np.complex64))
    elif kind == "flat":
        path = save(tmp_path / "flat.nii", noise(5, 6, 4), codes=(1, 0))
        stored = bytearray(path.read_bytes())
        stored[280:296] = bytes(16)  # srow_x
        path.write_bytes(stored)
    return path


@pytest.mark.parametrize("read", (read_image, read_labels))
@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("missing", "no such file"),
        ("empty", "empty"),
        ("truncated", "truncated"),
        ("headless", "damaged"),
        ("text", "damaged"),
        ("plain", "truncated"),
        ("flipped", "damaged"),
        ("suffix", "not an image name"),
        ("folder", "not a file"),
        ("series", "4-D image of 2 volumes"),
        ("vectors", "5-D"),
        ("colour", "colour"),
        ("complex", "complex"),
        ("flat", "geometry"),
    ],
)
def test_a_bad_file_is_one_line_that_names_it(tmp_path, read, kind, reason):
    path = spoiled(tmp_path, kind)
    with pytest.raises(InputError, match=reason) as caught:
        read(path)
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)


def test_nan_and_constant_images_are_refused_by_name(tmp_path):
    array = noise(4, 5, 6)
    assert check_image(read_image(save(tmp_path / "ok.nii", array))).grid.shape == (4, 5, 6)
    array[1, 2, 3] = np.nan
    array[0, 0, 0] = np.inf
    with pytest.raises(InputError, match=r"nan\.nii: 2 voxels are NaN or infinite"):
        check_image(read_image(save(tmp_path / "nan.nii", array)))
    with pytest.raises(InputError, match=r"flat\.nii: every voxel has the value 7"):
        check_image(read_image(save(tmp_path / "flat.nii", np.full((4, 5, 6), 7, np.int16))))


def test_data_of_another_shape_is_not_written(tmp_path):
    with pytest.raises(ValueError, match="does not lie on a grid"):
        write_image(tmp_path / "a.nii", torch.zeros(4, 5, 7), Grid((4, 5, 6), torch.eye(4)))
    with pytest.raises(InputError, match="not an image name"):
        write_image(tmp_path / "a.jpg", torch.zeros(4, 5, 6), Grid((4, 5, 6), torch.eye(4)))
    assert not list(tmp_path.iterdir())


def test_an_existing_image_is_kept_when_asked(tmp_path):
    grid = Grid((4, 5, 6), torch.eye(4))
    write_image(tmp_path / "a.nii", torch.zeros(4, 5, 6), grid)
    with pytest.raises(InputError, match="exists already"):
        write_image(tmp_path / "a.nii", torch.ones(4, 5, 6), grid, overwrite=False)
    assert bool((read_image(tmp_path / "a.nii").data == 0).all())


def test_images_are_taken_as_callers_have_them(tmp_path):
    array = noise(4, 5, 6)
    path = save(tmp_path / "a.nii", array)
    memory = nib.Nifti1Image(array, OBLIQUE)
    pairs = (array, OBLIQUE), (array[None], torch.from_numpy(OBLIQUE))
    for source in (path, str(path), read_image(path), nib.load(path), memory, *pairs):
        image = as_image(source)
        assert np.array_equal(image.data.numpy(), array[None])
        assert np.allclose(image.grid.affine.numpy(), OBLIQUE, atol=1e-5)
    assert as_image((torch.ones(3, 4), torch.eye(3))).grid.ndim == 2
    assert as_image((torch.ones(3, 4, dtype=torch.int16), torch.eye(3)), labels=True).data.dtype == torch.int16
    for odd in (np.flip(np.flip(array, 0), 0), array.astype(">f4"), array.tolist()):
        assert np.array_equal(as_image((odd, OBLIQUE)).data.numpy(), array[None])
    singular, meta = np.diag([1.0, 1, 0, 1]), torch.ones(4, 5, 6, device="meta")
    for wrong in (
        *(3, None, "", (array, np.eye(2)), (array[0, 0], OBLIQUE), (array, None), (array, 1.0), (array, np.ones(4))),
        *((array, singular), (array, OBLIQUE * np.nan), ("x", OBLIQUE), (array.astype(complex), OBLIQUE)),
        *((array[:0], OBLIQUE), (meta, OBLIQUE), (np.array([[[None]]]), OBLIQUE)),
    ):
        with pytest.raises(InputError):
            as_image(wrong)


def test_a_read_image_holds_no_open_file_and_no_double(tmp_path):
    image = read_image(save(tmp_path / "a.nii", np.arange(60, dtype=np.float64).reshape(3, 4, 5)))
    image.data.add_(1)  # writable, and not the file's memory
    assert float(read_image(tmp_path / "a.nii").data[0, 0, 0, 0]) == 0
    assert image.data.untyped_storage().nbytes() == 60 * 4


def test_c50_reading_again_and_again_holds_no_memory(tmp_path):
    """Eight volumes of 128^3 int16, twice: less than four of them as float32 stay (34 MB), and nothing is double."""
    array = (np.arange(128**3) % 999).astype(np.int16).reshape(128, 128, 128)
    paths = [save(tmp_path / f"{k}.nii.gz", array, np.eye(4)) for k in range(8)]
    read_image(paths[0])
    before = resident()
    for path in 2 * paths:
        assert read_image(path).data.dtype == torch.float32
    assert resident() - before < 4 * 4 * 128**3


def resident():
    """Bytes of memory that this process holds."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


@pytest.mark.parametrize("suffix", (".nii", ".nii.gz", ".mgz"))
def test_a_large_image_is_read_in_pieces(tmp_path, suffix, monkeypatch):
    monkeypatch.setattr(voxels, "_PIECE", 1000)
    grid = fixed_grid(3)
    for data in (torch.rand(grid.shape), torch.randint(-9, 3000, grid.shape, dtype=torch.int16)):
        write_image(tmp_path / f"a{suffix}", data, grid)
        read = read_image if data.is_floating_point() else read_labels
        assert torch.equal(read(tmp_path / f"a{suffix}").data[0], data)
    # labels stored as floats: the first planes need fewer bits than the last
    rising = torch.arange(grid.voxels).reshape(grid.shape).double()
    nib.save(nib.Nifti1Image((rising * 200).numpy(), OBLIQUE), tmp_path / "b.nii")
    labels = read_labels(tmp_path / "b.nii").data[0]
    assert labels.dtype == torch.int32 and torch.equal(labels.double(), rising * 200)


def test_what_follows_the_voxels_is_no_damage_and_what_lacks_is(tmp_path):
    whole = save(tmp_path / "a.nii", noise(6, 5, 4)).read_bytes()
    packed = gzip.compress(whole)
    for name, content in (
        ("more.nii", whole + b"more"),
        ("more.nii.gz", gzip.compress(whole + b"more")),
        ("parts.nii.gz", gzip.compress(whole[:400]) + gzip.compress(whole[400:]) + bytes(16)),
    ):
        (tmp_path / name).write_bytes(content)
        assert read_image(tmp_path / name).data.shape == (1, 6, 5, 4)
        assert read_header(tmp_path / name).grid.shape == (6, 5, 4)
    for name, content in (
        ("less.nii", whole[:-1]),
        ("less.nii.gz", packed[:-9]),
        ("sum.nii.gz", packed[:-8] + b"abcd"),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InputError, match=rf"{name}: truncated"):
            read_image(tmp_path / name)
