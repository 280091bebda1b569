"""What is wrong with a study, before days are spent training on it."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from regnet.data.facts import KINDS, Facts, inspect
from regnet.data.table import Row, Subject

SEVERITIES = ("error", "warning", "note")


@dataclass(frozen=True)
class Finding:
    """Something about a study.

    Attributes:
        severity: ``error``: training stops or learns what is wrong; ``warning``: it may; ``note``: good to know.
        name: what it is, in a word or two.
        where: rows or files.
        remedy: what to do about it.
    """

    severity: str
    name: str
    where: tuple[str, ...]
    remedy: str


def read_files(rows: Sequence[Row], jobs: int = 4, progress: Callable[[], None] = lambda: None) -> dict[Path, Facts]:
    """Read every file of a study once, several at a time (in threads: unpacking leaves Python's lock).

    Args:
        rows: of :func:`regnet.data.read_rows`.
        jobs: how many at a time.
        progress: called after each file.
    """
    kinds: dict[Path, str] = {}  # a label map that serves as a mask too is read as labels
    for row in rows:
        for _, part in parts(row):
            for kind, files in part.items():
                for path in files:
                    kinds.setdefault(path, kind)

    def read(path: Path) -> Facts:
        found = inspect(path, kinds[path])
        progress()
        return found

    with ThreadPoolExecutor(jobs) as pool:
        return dict(zip(kinds, pool.map(read, kinds), strict=True))


def count_files(rows: Sequence[Row]) -> int:
    """How many files :func:`read_files` reads."""
    return len({path for row in rows for _, part in parts(row) for files in part.values() for path in files})


def parts(row: Row) -> Iterator[tuple[str, dict[str, tuple[Path, ...]]]]:
    """The images of a row with their files by kind; the side's name is ``moving``, ``fixed``, or empty."""
    for side in ("",) if isinstance(row, Subject) else ("moving", "fixed"):
        names = {kind: kind if isinstance(row, Subject) else f"{side}_{kind}" for kind in KINDS[1:]}
        images = row.image if isinstance(row, Subject) else getattr(row, side)
        beside = {kind: getattr(row, name) for kind, name in names.items()}
        yield side, {"image": images} | {kind: (path,) for kind, path in beside.items() if path}


def findings(rows: Sequence[Row], facts: Mapping[Path, Facts]) -> list[Finding]:
    """All that is found, the worst first.

    Args:
        rows: of the study.
        facts: of :func:`read_files`.
    """
    every = [*_files(facts.values()), *_together(rows, facts), *_splits(rows, facts), *_labels(rows, facts)]
    every += [*_copies(facts.values()), *_kinds(facts.values())]
    return sorted((found for found in every if found.where), key=lambda found: SEVERITIES.index(found.severity))


def _files(facts: Iterable[Facts]) -> Iterator[Finding]:
    usable = [fact for fact in facts if not fact.error]
    broken = tuple(f"{fact.path}: {fact.error}" for fact in facts if fact.error)
    yield Finding("error", "cannot be read", broken, "restore the file, or take its row out")
    images = [fact for fact in usable if fact.kind == "image"]
    bad = tuple(f"{fact.path}: {fact.bad} voxels" for fact in images if fact.bad)
    yield Finding("error", "NaN or infinite", bad, "set them to the background's value, or make the image again")
    flat = tuple(str(fact.path) for fact in images if fact.low == fact.high)
    yield Finding("error", "constant image", flat, "there is nothing to register: take its row out")
    empty = tuple(
        str(f.path) for f in usable if (f.kind == "mask" and f.high <= 0) or (f.kind == "labels" and not f.values)
    )
    yield Finding("error", "empty mask or labels", empty, "make it again, or take it out of the table")


def _together(rows: Sequence[Row], facts: Mapping[Path, Facts]) -> Iterator[Finding]:
    """What must fit together within a row."""
    apart, points, same, far = [], [], [], []
    for row in rows:
        first, counts = [], set()
        for _, files in parts(row):
            image = facts[files["image"][0]]
            first.append(image)
            for path in (*files["image"][1:], *files.get("labels", ()), *files.get("mask", ())):
                grid = facts[path].grid
                if image.grid and grid and not grid.matches(image.grid, tolerance=0.1):
                    apart.append(f"{path} and {image.path}")
            counts |= {facts[path].count for path in files.get("points", ()) if not facts[path].error}
        if len(counts) > 1:
            points.append(f"{row.id}: {' and '.join(map(str, sorted(counts)))}")
        if len(first) == 2 and first[0].grid and first[1].grid:
            if first[0].digest == first[1].digest:
                same.append(row.id)
            elif first[0].grid.ndim != first[1].grid.ndim or not (
                getattr(row, "initial_transform", None) or first[0].grid.overlaps(first[1].grid)
            ):
                far.append(row.id)
    yield Finding("error", "other voxels than its image", _unique(apart), "resample it onto its image's grid")
    yield Finding(
        "error", "landmarks that do not go together", _unique(points), "both files need the same points in order"
    )
    yield Finding(
        "warning", "moving and fixed are the same", _unique(same), "take the row out: it teaches the identity"
    )
    yield Finding(
        "error", "no overlap in the world", _unique(far), "align them first, or name an affine initial_transform"
    )


def _splits(rows: Sequence[Row], facts: Mapping[Path, Facts]) -> Iterator[Finding]:
    """Who is in more than one split."""
    images: dict[str, set[str]] = defaultdict(set)
    names: dict[str, str] = {}
    groups: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        split = row.split or "train"
        if row.group:
            groups[row.group].add(split)
        for _, files in parts(row):
            for path in files["image"]:
                if facts[path].digest:
                    images[facts[path].digest].add(split)
                    names.setdefault(facts[path].digest, str(path))
    shared = tuple(f"{names[key]}: {', '.join(sorted(found))}" for key, found in images.items() if len(found) > 1)
    remedy = "keep a person in one split, or what is validated has been trained on; data.split draws one"
    yield Finding("error", "image in several splits", shared, remedy)
    people = tuple(f"{name}: {', '.join(sorted(found))}" for name, found in groups.items() if len(found) > 1)
    yield Finding("error", "group in several splits", people, remedy)


def _labels(rows: Sequence[Row], facts: Mapping[Path, Facts]) -> Iterator[Finding]:
    for kind, what in (("labels", "Dice"), ("points", "the landmark distance")):
        lacking = {str(f["image"][0]) for row in rows for _, f in parts(row) if kind not in f}
        if any(kind in files for row in rows for _, files in parts(row)):
            yield Finding(
                "warning", f"image without {kind}", tuple(sorted(lacking)), f"it has no part in {what}: add them"
            )
    maps = [fact for fact in facts.values() if fact.kind == "labels" and not fact.error and fact.values]
    known = sorted({value for fact in maps for value in fact.values})
    having = {value: [fact for fact in maps if value in fact.values] for value in known}
    rare = tuple(f"{value}: in {len(own)} of {len(maps)} maps" for value, own in having.items() if len(own) < len(maps))
    yield Finding("warning", "label that some maps lack", rare, "the structure is missing, or the numbering differs")


def _copies(facts: Iterable[Facts]) -> Iterator[Finding]:
    alike: dict[tuple[str, str], list[str]] = defaultdict(list)
    for fact in facts:
        if fact.digest:
            alike[fact.kind, fact.digest].append(str(fact.path))
    copies = tuple(" = ".join(paths) for paths in alike.values() if len(paths) > 1)
    yield Finding("warning", "same content under several names", copies, "keep one, or find out which file is wrong")


def _kinds(facts: Iterable[Facts]) -> Iterator[Finding]:
    """Kinds of images, where there are several."""
    images = [fact for fact in facts if fact.kind == "image" and fact.grid]
    for name, of, remedy in (
        ("orientations", lambda grid: grid.orientation, "they are brought to RAS; see that the headers are right"),
        ("dimensions", lambda grid: f"{grid.ndim}-D", "a model takes one: make two tables"),
    ):
        kinds: dict[str, int] = defaultdict(int)
        for fact in images:
            kinds[of(fact.grid)] += 1
        several = tuple(f"{kind}: {number}" for kind, number in sorted(kinds.items())) if len(kinds) > 1 else ()
        yield Finding("note" if name == "orientations" else "error", f"several {name}", several, remedy)


def _unique(found: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(found))
