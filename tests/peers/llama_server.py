#!/usr/bin/env python3
"""callme against a stock llama-server: same GGUF, prompts and threads, in turn, several rounds.

    tests/peers/llama_server.py --server LLAMA_SERVER --callme CALLME --model GGUF --functions F --prompts P

callme's time is that of its whole process, with a warm prefix cache; the server is loaded and warmed up before
its clock starts. Two ways to use the server:

  schema      chat completions with a JSON Schema of all calls as response format: what a user would set up
  grammar     /completion with callme's grammar, the model's own prompt and cache_prompt: its fastest

Prints each round, then for each way the median ratio (its time / callme's) with the least and the most. Prompts that carry
"functions" of their own (JSON lines) are asked with those.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

SYSTEM = "You are a helpful assistant."


def parse():
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--server", required=True, help="the llama-server program")
    flags.add_argument("--callme", required=True, help="the callme program")
    flags.add_argument("--model", required=True, help="a GGUF file; ChatML for the way `grammar`")
    flags.add_argument("--functions", required=True)
    flags.add_argument("--prompts", required=True)
    flags.add_argument("--ways", default="schema:8,grammar:8", help="WAY:SLOTS, separated by commas")
    flags.add_argument("--rounds", type=int, default=5)
    flags.add_argument("--threads", type=int, default=2)
    flags.add_argument("--port", type=int, default=18911)
    flags.add_argument("--callme-flags", default="", help="more flags of callme, separated by spaces")
    return flags.parse_args()


def tool(function):
    """A definition in whatever form as an OpenAI tool."""
    function = function.get("function", function)
    parameters = function.get("parameters", {})
    if parameters.get("type") not in ("object", "dict") or not isinstance(parameters.get("properties"), dict):
        parameters = {"type": "object", "properties": parameters, "required": list(parameters)}
    described = {"name": function["name"], "description": function.get("description", ""), "parameters": parameters}
    return {"type": "function", "function": described}


class Server:
    """A loaded llama-server."""

    def __init__(self, flags, slots):
        self.base = f"http://127.0.0.1:{flags.port}"
        command = [flags.server, "-m", flags.model, "--host", "127.0.0.1", "--port", str(flags.port)]
        command += ["-t", str(flags.threads), "-np", str(slots), "-c", str(4096 * slots), "--jinja", "--no-webui"]
        environment = dict(os.environ, LD_LIBRARY_PATH=str(pathlib.Path(flags.server).parent))
        quiet = subprocess.DEVNULL
        self.process = subprocess.Popen(command, env=environment, stdout=quiet, stderr=quiet)
        for _ in range(600):
            if self.process.poll() is not None:
                sys.exit(f"error: the server ended with {self.process.returncode}: {' '.join(command)}")
            try:
                with urllib.request.urlopen(self.base + "/health", timeout=2) as answer:
                    if json.load(answer).get("status") == "ok":
                        return
            except (OSError, ValueError):
                pass
            time.sleep(0.1)
        sys.exit("error: the server does not get ready")

    def post(self, path, body):
        data = json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=900) as answer:
            return json.load(answer)

    def stop(self):
        self.process.terminate()
        self.process.wait()


def by_schema(server, tools, prompt, _):
    calls = [
        {
            "type": "object",
            "properties": {"name": {"const": one["function"]["name"]}, "arguments": one["function"]["parameters"]},
            "required": ["name", "arguments"],
            "additionalProperties": False,
        }
        for one in tools
    ]
    listed = "\n".join(json.dumps(one) for one in tools)
    system = f'You call functions. Functions:\n{listed}\nAnswer with {{"name": ..., "arguments": ...}}.'
    body = {
        "messages": [{"role": "system", "content": system}, {"role": "user", "content": prompt}],
        "response_format": {"type": "json_schema", "json_schema": {"schema": {"anyOf": calls}}},
        "temperature": 0,
        "max_tokens": 200,
    }
    return server.post("/v1/chat/completions", body)["choices"][0]["message"]["content"]


def by_grammar(server, tools, prompt, grammar):
    listed = "\n".join(json.dumps(one) for one in tools)
    text = (
        f"<|im_start|>system\n{SYSTEM}\n\n# Tools\n\nYou may call one or more functions to assist with the user query.\n\n"
        f"You are provided with function signatures within <tools></tools> XML tags:\n<tools>\n{listed}\n</tools>\n\n"
        "For each function call, return a json object with function name and arguments within <tool_call></tool_call> "
        'XML tags:\n<tool_call>\n{"name": <function-name>, "arguments": <args-json-object>}\n</tool_call><|im_end|>\n'
        f"<|im_start|>user\n{prompt}<|im_end|>\n<|im_start|>assistant\n<tool_call>\n"
    )
    body = {"prompt": text, "grammar": grammar, "n_predict": 200, "temperature": 0, "cache_prompt": True}
    return server.post("/completion", body)["content"]


WAYS = {"schema": by_schema, "grammar": by_grammar}


def read(path):
    text = pathlib.Path(path).read_text()
    try:
        records = json.loads(text)
    except ValueError:
        records = [json.loads(line) for line in text.splitlines() if line.strip()]
    return [{"prompt": one} if isinstance(one, str) else one for one in records]


def grammar_of(flags, functions):
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(functions, file)
        file.flush()
        command = [flags.callme, "--functions_definition", file.name, "--emit-grammar", "--quiet"]
        return subprocess.run(command, check=False, capture_output=True, text=True).stdout


def is_right(text, case):
    try:
        call = json.loads(text)
    except ValueError:
        return False
    arguments = call.get("arguments", call.get("parameters"))
    return call.get("name") == case.get("name") and arguments in [case.get("parameters"), *case.get("accept", [])]


def time_server(flags, way, slots, cases):
    server = Server(flags, slots)
    try:
        def ask(case):
            try:
                return WAYS[way](server, case["tools"], case["prompt"], case["grammar"])
            except OSError as error:
                return f"error: {error}"

        with concurrent.futures.ThreadPoolExecutor(slots) as pool:
            list(pool.map(ask, [dict(cases[0], prompt="warm up")] * slots))
            start = time.monotonic()
            texts = list(pool.map(ask, cases))
            seconds = time.monotonic() - start
    finally:
        server.stop()
    failed = sum(text.startswith("error") for text in texts)
    return seconds, sum(map(is_right, texts, cases)), failed


def time_callme(flags, prefixes, cases):
    with tempfile.TemporaryDirectory() as folder:
        output = pathlib.Path(folder, "calls.json")
        command = [flags.callme, "--model", flags.model, "--functions_definition", flags.functions]
        command += ["--input", flags.prompts, "--output", str(output), "--threads", str(flags.threads), "--quiet"]
        command += ["--prefix-cache", prefixes, *flags.callme_flags.split()]
        start = time.monotonic()
        subprocess.run(command, check=False, stdin=subprocess.DEVNULL)
        seconds = time.monotonic() - start
        records = json.loads(output.read_text())
    texts = [json.dumps(record) for record in records]
    return seconds, sum(map(is_right, texts, cases)), sum(record["name"] is None for record in records)


def main():
    flags = parse()
    shared = json.loads(pathlib.Path(flags.functions).read_text())
    shared = shared.get("tools", []) if isinstance(shared, dict) else shared
    shared_grammar = grammar_of(flags, shared) if shared else ""
    cases = read(flags.prompts)
    for case in cases:
        own = case.get("functions")
        case["tools"] = [tool(one) for one in (own or shared)]
        case["grammar"] = grammar_of(flags, own) if own else shared_grammar
    ways = [(way, int(slots)) for way, slots in (one.split(":") for one in flags.ways.split(","))]
    ratios = {way: [] for way in ways}
    with tempfile.TemporaryDirectory() as prefixes:
        time_callme(flags, prefixes, cases)
        for number in range(flags.rounds):
            ours, right, failed = time_callme(flags, prefixes, cases)
            print(f"round {number + 1}: callme {ours:.1f} s, {right} right, {failed} failed", flush=True)
            for way, slots in ways:
                theirs, right, failed = time_server(flags, way, slots, cases)
                ratios[way, slots].append(theirs / ours)
                told = f"  {way}, {slots} slots: {theirs:.1f} s, {right} right, {failed} failed"
                print(f"{told}, ratio {theirs / ours:.2f}", flush=True)
    for (way, slots), found in ratios.items():
        spread = f"{min(found):.2f} to {max(found):.2f}, {len(found)} rounds, {len(cases)} prompts"
        print(f"{way}, {slots} slots: {statistics.median(found):.2f} times callme's time ({spread})")


if __name__ == "__main__":
    main()
