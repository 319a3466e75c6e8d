#!/usr/bin/env python3
"""GGUF in, vocabulary-only GGUF out: the same metadata, byte for byte, and no tensors.

Usage: vocab.py IN.gguf OUT.gguf
"""

import struct
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "target" / "python"))

from gguf import GGUFReader  # noqa: E402

HEADER = struct.Struct("<4sIQQ")  # magic, version, tensor count, key count


def main(source: str, target: str) -> None:
    reader = GGUFReader(source)
    keys = [field for name, field in reader.fields.items() if not name.startswith("GGUF.")]
    end = max(field.offset + sum(part.nbytes for part in field.parts) for field in keys)
    with open(source, "rb") as file:
        magic, version, _, n_keys = HEADER.unpack(file.read(HEADER.size))
        metadata = file.read(end - HEADER.size)
    metadata += b"\0" * (-end % 32)  # Tensor data begins at a multiple of 32, even where there is none.
    partial = Path(target + ".part")
    partial.write_bytes(HEADER.pack(magic, version, 0, n_keys) + metadata)
    partial.rename(target)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
