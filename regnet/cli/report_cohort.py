"""``regnet report DIR`` of a cohort: a page for every pair, and an index of all."""

import argparse
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import torch

from regnet.cli.output import outputs
from regnet.cli.progress import progress
from regnet.errors import InputError
from regnet.inference.engine import run_each
from regnet.inference.manifest import DONE, FAILED, Manifest, read_manifests
from regnet.inference.meaning import MEANING
from regnet.inference.registered import case_of, changed, protocol_of
from regnet.inference.scene import scene
from regnet.io import atomic_path, check_output
from regnet.io.within import is_within


def run(args: argparse.Namespace, folder: Path) -> int:
    """Write the pages and print where the index is."""
    from regnet.report.cohort_page import Entry, cohort_page

    if args.jobs < 1:
        raise InputError(f"--jobs {args.jobs}: at least 1 is needed")
    manifests = read_manifests(folder)
    out = args.out or folder / "report"
    pages = {name: out / "pairs" / f"{name}.html" for name in manifests}
    for name, page in pages.items():
        if not is_within(out / "pairs", page):
            raise InputError(f"{folder}: a manifest's id, {name!r}, is no name of a file")
    index = out / "index.html"
    entries = {name: _without_page(manifest) for name, manifest in manifests.items()}
    done = [manifest for manifest in manifests.values() if manifest["status"] == DONE]
    for page in pages.values():
        check_output(page, args.overwrite)
    with outputs([index], args.overwrite):  # pages are many, and each is whole by itself
        for name in manifests.keys() - {manifest["id"] for manifest in done}:
            pages[name].unlink(missing_ok=True)
        work = _Work(folder, pages, max(1, torch.get_num_threads() // args.jobs))
        with progress("reporting", len(done)) as tell:
            for count, (number, outcome) in enumerate(run_each(work, done, args.jobs), start=1):
                name = done[number]["id"]
                if isinstance(outcome, Exception):
                    pages[name].unlink(missing_ok=True)
                    outcome = _without_page(done[number]) | {"error": f"no page: {_one_line(outcome)}"}
                    print(f"regnet: warning: {name}: {outcome['error']}", file=sys.stderr)
                entries[name] = outcome
                tell(count, "")
        facts = [f"regnet {' and '.join(sorted({manifest['version'] for manifest in manifests.values()}))}"]
        text = cohort_page(folder.resolve().name, [Entry(**each) for each in entries.values()], facts, MEANING)
        with atomic_path(index, overwrite=True) as temporary:
            temporary.write_text(text, encoding="utf-8")
    failed = sum(manifest["status"] == FAILED for manifest in manifests.values())
    print(f"{len(done)} of {len(manifests)} pairs are done, {failed} failed")
    print(index)
    return 0


def _without_page(manifest: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": manifest["id"],
        "status": manifest["status"],
        "seconds": manifest.get("seconds") or float("nan"),
        "error": manifest.get("error", ""),
    }


@dataclass(frozen=True)
class _Work:
    """What another process does with a manifest: it writes the pair's page and returns its entry in the index."""

    folder: Path
    pages: Mapping[str, Path]
    threads: int

    def __call__(self, manifest: Manifest) -> dict[str, Any]:
        from regnet.report.pair_page import pair_page
        from regnet.report.thumbnail import thumbnail

        torch.set_num_threads(self.threads)
        stale = changed(manifest, self.folder)
        about = manifest | {"warnings": [*manifest.get("warnings", []), *stale]}
        seen = scene(case_of(manifest, self.folder), about, protocol_of(manifest))
        page = self.pages[manifest["id"]]
        with atomic_path(page, overwrite=True) as temporary:
            temporary.write_text(pair_page(seen, MEANING, "../index.html"), encoding="utf-8")
        return _without_page(manifest) | {
            "link": f"pairs/{quote(page.name)}",
            "picture": thumbnail(seen),
            "figures": seen.means[1],
            "remarks": seen.remarks(),
        }


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__
