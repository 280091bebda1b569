"""The package as it is built and imported: what it needs, and what it says where something is missing."""

import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

import regnet

ROOT = Path(__file__).parent.parent
PACKAGE = Path(regnet.__file__).parent

NO_CORE = "import sys; sys.modules['regnet.ops._cpu_base'] = sys.modules['regnet.ops._cpu_v3'] = None\n"


def python(code: str, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *options, "-c", code], capture_output=True, encoding="utf-8", check=False)


def sources() -> list[Path]:
    return [path for folder in (PACKAGE, ROOT / "tools", ROOT / "benchmarks") for path in folder.rglob("*.py")]


def test_the_version_is_the_distributions() -> None:
    assert metadata.version("regnet") == regnet.__version__


def test_the_build_needs_no_torch_and_the_package_does() -> None:
    pyproject = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    build = re.search(r"^requires = \[(.*?)\]", pyproject, re.MULTILINE | re.DOTALL)
    assert build is not None
    assert "torch" not in build.group(1)
    assert [line for line in metadata.requires("regnet") or [] if re.match(r"torch\b", line)]


def test_the_compiled_modules_are_tied_to_no_torch() -> None:
    """So one build serves every torch version; the checks run under two of them."""
    code = "from regnet.ops import _core\nfor name in ('base', _core.isa()):\n    print(_core._load(name).__file__)"
    found = python(code).stdout.split()
    assert found
    for path in found:
        binary = Path(path).read_bytes()
        assert b"libtorch" not in binary
        assert b"libc10" not in binary


CALL = """import torch, regnet
flow = torch.full((1, 2, 4, 5), 0.5, requires_grad=True)
image = regnet.ops.identity((4, 5))
for order in (1, 3):
    regnet.ops.warp(image, flow, order).sum().backward()
    regnet.ops.push(image, flow, (4, 5), order).sum().backward()
print(regnet.ops.warp(image, flow)[0, :, 1, 2].tolist())
"""


def test_c78_without_the_compiled_part_plain_torch_computes_and_says_once_how_to_build_it() -> None:
    done = python(NO_CORE + CALL)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[1.5, 2.5]"
    (warning,) = [line for line in done.stderr.splitlines() if "Warning" in line]
    assert "plain torch" in warning and "pip install ." in warning
    assert "_cpu_base" not in python(NO_CORE + "import regnet, regnet.models, regnet.training, regnet.inference").stderr


def test_the_environment_chooses_the_backend() -> None:
    choose = "import os\nos.environ['REGNET_BACKEND'] = {!r}\n"
    for start, wanted in ((NO_CORE, "torch"), ("", "torch"), ("", "native")):
        done = python(start + choose.format(wanted) + CALL)
        assert (done.returncode, done.stderr, done.stdout.strip()) == (0, "", "[1.5, 2.5]")
    missing = python(NO_CORE + choose.format("native") + CALL)
    unknown = python(choose.format("cuda") + CALL)
    assert missing.returncode == unknown.returncode == 1
    assert "regnet's compiled operators are missing" in missing.stderr and "pip install ." in missing.stderr
    assert "REGNET_BACKEND must be one of native, torch, got 'cuda'" in unknown.stderr


@pytest.mark.parametrize("words", [["--version"], ["info"]])
def test_without_the_compiled_part_the_command_still_tells_its_state(words: list[str]) -> None:
    done = python(f"{NO_CORE}from regnet.cli.main import main\nsys.exit(main({words!r}))")
    assert done.returncode == 0, done.stderr
    assert regnet.__version__ in done.stdout


def test_nothing_needs_the_modules_that_newer_pythons_dropped() -> None:
    dropped = re.compile(r"^\s*(import|from) (distutils|pkg_resources)\b", re.MULTILINE)
    assert not [path for path in sources() if dropped.search(path.read_text(encoding="utf-8"))]


def test_importing_warns_of_no_deprecation() -> None:
    parts = "ops, spatial, io, losses, metrics, models, inference, report, cli.main"
    code = "import regnet\n" + "\n".join(f"import regnet.{part}" for part in parts.split(", "))
    done = python(code, "-W", "error::DeprecationWarning")
    assert done.returncode == 0, done.stderr
