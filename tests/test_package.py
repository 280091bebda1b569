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
    return subprocess.run([sys.executable, *options, "-c", code], capture_output=True, text=True, check=False)


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


def test_without_the_compiled_part_the_package_imports_and_a_call_says_how_to_build_it() -> None:
    call = "import torch, regnet\nregnet.ops.warp(torch.zeros(1, 1, 4, 5), torch.zeros(1, 2, 4, 5))"
    done = python(NO_CORE + call)
    last = done.stderr.strip().splitlines()[-1]
    assert done.returncode == 1
    assert last.startswith("RuntimeError: regnet's compiled operators are missing")
    assert "pip install ." in last
    assert "_cpu_base" not in python(NO_CORE + "import regnet, regnet.models, regnet.training, regnet.inference").stderr


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
