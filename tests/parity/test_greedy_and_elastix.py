"""Other programs resample with our files as we do, and we with theirs: greedy and elastix."""

import subprocess
import sys
from pathlib import Path

import pytest
from picsl_greedy import Greedy3D

from regnet.io import read_image, read_transform, write_transform
from regnet.spatial import Affine, chain
from tests.io.maps import affine, field, in_view, random_grid, write_pair


@pytest.mark.parametrize("seed", (0, 1, 2))
def test_greedy_resamples_with_our_field_and_matrix_as_we_do(tmp_path: Path, seed: int) -> None:
    fixed, moving = random_grid(3, seed), random_grid(3, seed + 10)
    image = write_pair(tmp_path, fixed, moving)
    write_transform(tmp_path / "w.nii.gz", field(fixed))
    write_transform(tmp_path / "a.mat", affine(3), target="ras")
    # Both of us name the transforms in the same order: the last touches the moving image first.
    names = [str(tmp_path / name) for name in ("w.nii.gz", "a.mat")]
    fixed_file, moving_file, out = (tmp_path / f"{name}.nii.gz" for name in ("fixed", "moving", "out"))
    Greedy3D().execute(f"-d 3 -rf {fixed_file} -rm {moving_file} {out} -r {' '.join(names)}")
    parts = [read_transform(names[0]), read_transform(names[1], source="ras")]
    ours = chain(parts).apply(image, moving, fixed)[0, 0]
    seen = in_view(chain(parts), moving, fixed)
    assert int(seen.sum()) > 300
    assert (read_image(out).data[0] - ours)[seen].abs().max() < 0.1  # of a range of 100


ELASTIX = """
import itk, sys
folder = sys.argv[1]
parameters = itk.ParameterObject.New()
rough = parameters.GetDefaultParameterMap("affine", 1)
rough["MaximumNumberOfIterations"] = ["5"]
rough["FinalBSplineInterpolationOrder"] = ["1"]
rough["ResultImagePixelType"] = ["float"]
rough["WriteITKCompositeTransform"] = ["true"]
rough["ITKTransformOutputFileNameExtension"] = ["h5"]
parameters.AddParameterMap(rough)
pair = [itk.imread(f"{folder}/{name}.nii.gz", itk.F) for name in ("fixed", "moving")]
elastix = itk.ElastixRegistrationMethod.New(*pair, parameter_object=parameters, output_directory=folder)
elastix.UpdateLargestPossibleRegion()
itk.imwrite(elastix.GetOutput(), f"{folder}/moved.nii.gz")
"""


@pytest.mark.slow
def test_we_resample_with_a_composite_of_elastix_as_it_does(tmp_path: Path) -> None:
    fixed, moving = random_grid(3, 1), random_grid(3, 11)
    image = write_pair(tmp_path, fixed, moving)
    # In a process of its own: the copies of ITK in these packages do not live together.
    subprocess.run([sys.executable, "-c", ELASTIX, str(tmp_path)], check=True, capture_output=True)
    theirs = read_image(tmp_path / "moved.nii.gz").data[0]
    found = read_transform(tmp_path / "TransformParameters.0-Composite.h5")
    ours = found.apply(image, moving, fixed)[0, 0]
    seen = in_view(found, moving, fixed)
    assert int(seen.sum()) > 300
    assert (ours - theirs)[seen].abs().max() < 0.1
    still = Affine.identity(3).apply(image, moving, fixed)[0, 0]
    assert (still - theirs)[seen].abs().max() > 1
