"""What the compiler made of the kernels: ``kernels.py BUILD_LOG PTX ...`` of a build with ``-Xptxas=-v --keep``.

Prints the registers of the kernels that most calls run, and fails where one of single precision, orders 1 and 3, in 3-D
spills registers to memory, or where any of single precision computes in double.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

MATTERS = re.compile(r"(Sample|Contract|Scatter)<3, [13], [01], float")
TABLES = re.compile(r"Tabulate|Factorise")  # once a line or a node, in double for everybody
RESOURCES = re.compile(
    r"Compiling entry function '(\S+)'.*\n.*Function properties.*\n"
    r"\s*\d+ bytes stack frame, (\d+) bytes spill stores, \d+ bytes spill loads\n.*Used (\d+) registers"
)


def readable(text: str) -> str:
    """With the names of C++."""
    done = subprocess.run(["c++filt"], input=text, capture_output=True, text=True, check=True).stdout
    return done.replace("regnet::", "").replace("(anonymous namespace)::", "")


def in_double(ptx: str) -> Iterator[str]:
    """The entries of single precision that compute in double."""
    for name, body in re.findall(r"\.entry (\S+?)\(\n.*?\n\{\n(.*?)\n\}", ptx, re.DOTALL):
        shown = readable(name)
        if "float" in shown and not TABLES.search(shown) and re.search(r"\.f64\s", body):
            yield shown


def main(log: Path, *kept: Path) -> int:
    """Report; 1 where a promise is broken."""
    resources = [(readable(name), int(s), int(r)) for name, s, r in RESOURCES.findall(log.read_text())]
    broken = [f"{name} computes in double" for ptx in kept for name in in_double(ptx.read_text())]
    seen = 0
    for name, spilled, registers in resources:
        if found := MATTERS.search(name):
            seen += 1
            print(f"{found.group()}>: {registers} registers, {spilled} bytes spilled")
            broken += [f"{name} spills registers"] * (spilled > 0)
    if not seen or not kept:
        broken.append("no kernel or no PTX found: is this a log of -Xptxas=-v --keep?")
    print(f"{len(resources)} kernels, of which {sum(s > 0 for _, s, _ in resources)} spill")
    for what in broken:
        print(what, file=sys.stderr)
    return int(bool(broken))


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:])))
