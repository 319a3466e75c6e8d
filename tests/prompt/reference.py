"""The reference for prompt rendering: Python's jinja2 as Hugging Face's apply_chat_template sets it up.

    reference.py render < CASES      one JSON case a line in, the rendered text as JSON a line out
    reference.py model FILE          template and special tokens of a GGUF or a tokenizer_config.json, as JSON

A case is {"template": text, "context": variables}. `model` of a GGUF needs PyPI's `gguf`.
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


def model(path):
    if path.endswith(".json"):
        with open(path, encoding="utf-8") as file:
            config = json.load(file)

        def text(token):
            return token["content"] if isinstance(token, dict) else token or ""

        return {
            "chat_template": config.get("chat_template"),
            "bos": text(config.get("bos_token")),
            "eos": text(config.get("eos_token")),
            "specials": [token["content"] for token in config["added_tokens_decoder"].values()],
        }
    import gguf

    fields = gguf.GGUFReader(path).fields

    def get(key):
        return fields[key].contents() if key in fields else None

    tokens = get("tokenizer.ggml.tokens")
    types = get("tokenizer.ggml.token_type")

    def named(key):
        number = get(f"tokenizer.ggml.{key}_token_id")
        return "" if number is None else tokens[number]

    return {
        "chat_template": get("tokenizer.chat_template"),
        "bos": named("bos"),
        "eos": named("eos"),
        "specials": [token for token, kind in zip(tokens, types) if kind in (3, 4)],
    }


if __name__ == "__main__":
    if sys.argv[1] == "model":
        print(json.dumps(model(sys.argv[2])))
    else:
        for line in sys.stdin:
            print(json.dumps(render(json.loads(line))))
