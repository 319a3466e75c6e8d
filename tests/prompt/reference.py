"""The reference for prompt rendering: Python's jinja2 as Hugging Face's apply_chat_template sets it up.

    reference.py < CASES      one JSON case a line in, the rendered text as JSON a line out

A case is {"template": text, "context": variables}.
"""

import json
import sys

import jinja2
import jinja2.ext
from jinja2.sandbox import ImmutableSandboxedEnvironment


def environment():
    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[jinja2.ext.loopcontrols])
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    return env


def render(case):
    try:
        return environment().from_string(case["template"]).render(**case["context"])
    except (jinja2.exceptions.TemplateError, TypeError) as error:
        return {"error": str(error)}


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(render(json.loads(line))))
