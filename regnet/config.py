"""Where the configuration files are."""

from pathlib import Path


def config_dir() -> Path:
    """The folder of ``train.yaml`` and its groups: the package's in an installed wheel, the repository's in a checkout.

    Raises:
        FileNotFoundError: the package was installed without its configuration files.
    """
    package = Path(__file__).resolve().parent
    for folder in (package / "configs", package.parent / "configs"):
        if (folder / "train.yaml").is_file():
            return folder
    raise FileNotFoundError(f"no configuration files beside {package}: install regnet again")
