"""Who may import whom (docs/architecture.md), read from the sources; and what `import regnet` does not load."""

import ast
import functools
import subprocess
import sys
from pathlib import Path

import pytest

import regnet

PACKAGE = Path(regnet.__file__).parent

# Each part of the package and the parts it may import, besides itself.
BASIS = {"errors"}
OPERATORS = BASIS | {"ops", "spatial"}
MIDDLE = OPERATORS | {"io", "losses", "metrics", "models", "data", "report"}
MAY_IMPORT = {
    "errors": set(),
    "config": set(),
    "memory": set(),
    "ops": BASIS,
    "spatial": BASIS | {"ops"},
    "io": OPERATORS,
    "losses": OPERATORS,
    "metrics": OPERATORS,
    "models": OPERATORS,
    "data": OPERATORS | {"io"},
    "sweeps": BASIS | {"io"},
    "report": OPERATORS | {"io", "metrics", "sweeps"},
    "training": MIDDLE | {"config", "sweeps"},
    "inference": MIDDLE | {"config"},
    "cli": MIDDLE | {"config", "memory", "training", "inference", "sweeps"},
    "plugins": {"cli"},
    "__main__": {"cli"},
}

# `Transform.save` and `load` hand on to the files above, when they are called.
EXCEPTIONS = {"spatial/transform.py": {"io"}}

# Packages that only some files may import, whatever the part.
ONLY_IN = {
    "nibabel": ("io/",),
    "lightning": ("training/", "data/datamodule.py"),
    "pytorch_lightning": (),
    "hydra": ("cli/train.py", "cli/words.py", "cli/sweep/"),
    "optuna": ("sweeps/study.py",),
    "wandb": ("training/callbacks/",),
    "matplotlib": ("report/",),
    "SimpleITK": ("io/simpleitk.py",),
    "_cpu_base": ("ops/_core.py",),
    "_cpu_v3": ("ops/_core.py",),
    "_cuda": ("ops/_core.py",),
    "_plan": ("ops/_core.py",),
}


def files() -> list[str]:
    return sorted(path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py"))


def part(file: str) -> str:
    """The first level below the package: ``ops`` for ``ops/box.py``, ``errors`` for ``errors.py``."""
    return file.split("/")[0].removesuffix(".py")


@functools.cache
def tree(file: str) -> ast.Module:
    return ast.parse((PACKAGE / file).read_text(encoding="utf-8"))


@functools.cache
def imports(file: str) -> tuple[str, ...]:
    """Every module a file imports, at its top or within a function; `regnet.io.image` for `from regnet.io.image`."""
    names: list[str] = []
    for node in ast.walk(tree(file)):
        if isinstance(node, ast.Import):
            names.extend(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            here = ["regnet", *Path(file).parts][: -node.level] if node.level else []
            module = ".".join([*here, *([node.module] if node.module else [])])
            names.extend(f"{module}.{alias.name}" for alias in node.names)
    return tuple(names)


def parts_imported(file: str) -> set[str]:
    names = [name.split(".") for name in imports(file)]
    # `from regnet import __version__` is the package itself, which loads nothing
    return {name[1] for name in names if name[0] == "regnet" and len(name) > 1 and name[1] != "__version__"}


@pytest.mark.parametrize("file", [file for file in files() if file != "__init__.py"])
def test_a_file_imports_only_the_parts_below_its_own(file: str) -> None:
    assert parts_imported(file) - {part(file)} <= MAY_IMPORT[part(file)] | EXCEPTIONS.get(file, set())


def test_the_rule_has_no_cycle() -> None:
    below = {name: set(parts) for name, parts in MAY_IMPORT.items()}
    while below:
        lowest = [name for name, parts in below.items() if not parts & below.keys()]
        assert lowest, f"cycle among {sorted(below)}"
        for name in lowest:
            del below[name]


@pytest.mark.parametrize("package", ONLY_IN)
def test_a_restricted_package_is_imported_only_where_it_belongs(package: str) -> None:
    guilty = [
        file
        for file in files()
        if not file.startswith(ONLY_IN[package]) and any(package in name.split(".") for name in imports(file))
    ]
    assert not guilty


@pytest.mark.parametrize("file", [file for file in files() if part(file) in ("ops", "spatial")])
def test_operators_and_spaces_know_no_module_class(file: str) -> None:
    assert not [
        node.lineno for node in ast.walk(tree(file)) if isinstance(node, ast.Attribute) and node.attr == "Module"
    ]


@pytest.mark.parametrize(
    "package", ["lightning", "hydra", "wandb", "matplotlib", "nibabel", "tensorboard", "SimpleITK"]
)
def test_importing_regnet_loads_nothing_heavy(package: str, modules_after_import: set[str]) -> None:
    assert package not in modules_after_import


def test_importing_the_operators_loads_no_framework(modules_after_operators: set[str]) -> None:
    assert not modules_after_operators & {"lightning", "hydra", "wandb", "matplotlib", "nibabel"}


@pytest.fixture(scope="module")
def modules_after_import() -> set[str]:
    return modules_after("import regnet, regnet.cli.main")


@pytest.fixture(scope="module")
def modules_after_operators() -> set[str]:
    return modules_after("import regnet; regnet.ops.warp; regnet.losses; regnet.models")


def modules_after(statement: str) -> set[str]:
    code = f"import sys\n{statement}\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())
