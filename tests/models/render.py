#!/usr/bin/env python3
"""A chat template and its variables in, the text that Hugging Face's transformers would render out.

Usage: render.py FILE.json      (`-` is stdin)

FILE is {"template": "...", "variables": {"messages": [...], "tools": [...], ...}}. The text goes to
stdout as UTF-8, with nothing added. The settings are those of transformers' utils/chat_template_utils.py.
A template that gives up (`raise_exception`) ends with exit status 1 and its message on stderr.
"""

import json
import sys
from datetime import datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "target" / "python"))

from jinja2.exceptions import TemplateError  # noqa: E402
from jinja2.sandbox import ImmutableSandboxedEnvironment  # noqa: E402


def raise_exception(message):
    raise TemplateError(message)


def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def render(template: str, variables: dict) -> str:
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
    )
    environment.filters["tojson"] = tojson
    environment.globals["raise_exception"] = raise_exception
    environment.globals["strftime_now"] = lambda form: datetime.now().strftime(form)
    return environment.from_string(template).render(**variables)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    raw = sys.stdin.buffer.read() if sys.argv[1] == "-" else Path(sys.argv[1]).read_bytes()
    task = json.loads(raw)
    try:
        text = render(task["template"], task["variables"])
    except TemplateError as error:
        sys.exit(f"error: {error}")
    sys.stdout.buffer.write(text.encode("utf-8"))
