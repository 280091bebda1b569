"""The headers of the core as C++ that puts them into a dictionary: ``embed.py OUTPUT HEADER...``.

So a binary carries the very sources that its plans were made with.
"""

import sys
from pathlib import Path

output, *headers = map(Path, sys.argv[1:])
lines = [f'sources["regnet/{h.name}"] = R"~~({h.read_text(encoding="utf-8")})~~";\n' for h in headers]
output.write_text("".join(lines), encoding="utf-8")
