#!/usr/bin/env python3
"""A vocabulary in, a GGUF with that vocabulary and a tiny network of random weights out.

Usage: tiny.py qwen3 VOCABULARY OUT.gguf
       tiny.py gemma3 VOCABULARY OUT.gguf [tokenizer_config.json]
       tiny.py mamba VOCABULARY OUT.gguf

VOCABULARY is a GGUF, or a folder with Hugging Face's tokenizer.json and tokenizer_config.json
(byte-level BPE only). The third file of gemma3 gives the chat template that a base model lacks.
The weights come from a fixed seed, so the same vocabulary gives the same file.
"""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "target" / "python"))

import numpy as np  # noqa: E402
from gguf import GGUFReader, GGUFValueType, GGUFWriter, TokenType  # noqa: E402

N_EMBD, N_FF, N_HEAD, N_HEAD_KV, N_HEAD_DIM = 64, 128, 2, 1, 32
N_LAYER = {"qwen3": 2, "gemma3": 7, "mamba": 2}  # gemma3: every sixth layer sees all, the others a window.
N_STATE, N_CONV, RANK = 16, 4, 4  # Of mamba, whose layers are twice as wide inside as outside.
WINDOW = 64
QWEN3_ROWS = 151_936  # Qwen3's embedding has more rows than its tokenizer has tokens.


def looks_special(text: str) -> bool:
    """Which added tokens llama.cpp's converter makes CONTROL though the tokenizer does not say special."""
    return text in ("<pad>", "<mask>") or (text.startswith("<|") and text.endswith("|>"))


def add_tokenizer(writer: GGUFWriter, folder: Path) -> int:
    """Writes a byte-level BPE tokenizer as llama.cpp's converter does; returns the number of tokens."""
    tokenizer = json.loads((folder / "tokenizer.json").read_text("utf-8"))
    config = json.loads((folder / "tokenizer_config.json").read_text("utf-8"))
    tokens = [f"[PAD{i}]" for i in range(QWEN3_ROWS)]
    types = [TokenType.UNUSED] * QWEN3_ROWS
    ids = {}
    for text, i in tokenizer["model"]["vocab"].items():
        tokens[i], types[i] = text, TokenType.NORMAL
    for added in tokenizer["added_tokens"]:
        i, text = added["id"], added["content"]
        control = added["special"] or looks_special(text)
        tokens[i], types[i] = text, TokenType.CONTROL if control else TokenType.USER_DEFINED
        ids[text] = i
    merges = [m if isinstance(m, str) else " ".join(p.replace(" ", "Ġ") for p in m) for m in tokenizer["model"]["merges"]]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    writer.add_token_merges(merges)
    writer.add_eos_token_id(ids[config["eos_token"]])
    writer.add_pad_token_id(ids[config["pad_token"]])
    writer.add_bos_token_id(ids[config["bos_token"] or config["pad_token"]])
    writer.add_add_bos_token(config["add_bos_token"])
    writer.add_chat_template(config["chat_template"])
    return len(tokens)


def copy_tokenizer(writer: GGUFWriter, source: Path) -> int:
    """Copies every tokenizer key of a GGUF; returns the number of tokens."""
    fields = GGUFReader(source).fields
    for name, field in fields.items():
        if name.startswith("tokenizer."):
            kind = field.types[0]
            of = field.types[-1] if kind == GGUFValueType.ARRAY else None
            writer.add_key_value(name, field.contents(), kind, of)
    return len(fields["tokenizer.ggml.tokens"].data)


def add_network(writer: GGUFWriter, arch: str, n_vocab: int) -> None:
    """Writes the hyperparameters and tensors that llama.cpp's src/models/{qwen3,gemma3}.cpp asks for."""
    writer.add_context_length(32_768)
    writer.add_embedding_length(N_EMBD)
    writer.add_block_count(N_LAYER[arch])
    writer.add_feed_forward_length(N_FF)
    writer.add_head_count(N_HEAD)
    writer.add_head_count_kv(N_HEAD_KV)
    writer.add_key_length(N_HEAD_DIM)
    writer.add_value_length(N_HEAD_DIM)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_freq_base(1e6)
    writer.add_file_type(1)  # Mostly F16.
    if arch == "gemma3":
        writer.add_sliding_window(WINDOW)

    random = np.random.default_rng(20_260_101)

    def matrix(name: str, rows: int, columns: int, scale: float) -> None:
        weights = random.standard_normal((rows, columns), dtype=np.float32) * scale / columns**0.5
        writer.add_tensor(f"{name}.weight", weights.astype(np.float16))

    def norm(name: str, size: int) -> None:
        writer.add_tensor(f"{name}.weight", np.ones(size, dtype=np.float32))

    # The output head is tied to the embedding, as in the real models. The layers are scaled up so that
    # they outweigh the embedding in the residual stream; otherwise every token would predict itself.
    # gemma3 multiplies the embedding by sqrt(n_embd) and normalizes what each layer adds, hence its own scale.
    matrix("token_embd", n_vocab, N_EMBD, 1.0 if arch == "qwen3" else 0.1)
    norm("output_norm", N_EMBD)
    for i in range(N_LAYER[arch]):
        block = f"blk.{i}"
        norm(f"{block}.attn_norm", N_EMBD)
        matrix(f"{block}.attn_q", N_HEAD * N_HEAD_DIM, N_EMBD, 1.0)
        matrix(f"{block}.attn_k", N_HEAD_KV * N_HEAD_DIM, N_EMBD, 1.0)
        matrix(f"{block}.attn_v", N_HEAD_KV * N_HEAD_DIM, N_EMBD, 1.0)
        matrix(f"{block}.attn_output", N_EMBD, N_HEAD * N_HEAD_DIM, 3.0)
        norm(f"{block}.attn_q_norm", N_HEAD_DIM)
        norm(f"{block}.attn_k_norm", N_HEAD_DIM)
        norm(f"{block}.ffn_norm", N_EMBD)
        matrix(f"{block}.ffn_gate", N_FF, N_EMBD, 1.0)
        matrix(f"{block}.ffn_up", N_FF, N_EMBD, 1.0)
        matrix(f"{block}.ffn_down", N_EMBD, N_FF, 3.0)
        if arch == "gemma3":
            norm(f"{block}.post_attention_norm", N_EMBD)
            norm(f"{block}.post_ffw_norm", N_EMBD)


def add_mamba(writer: GGUFWriter, n_vocab: int) -> None:
    """The same of src/models/mamba.cpp, whose state has no cells: it can be kept or lost as a whole only."""
    inner = 2 * N_EMBD
    writer.add_context_length(32_768)
    writer.add_embedding_length(N_EMBD)
    writer.add_block_count(N_LAYER["mamba"])
    writer.add_feed_forward_length(0)
    writer.add_head_count(0)
    writer.add_ssm_conv_kernel(N_CONV)
    writer.add_ssm_inner_size(inner)
    writer.add_ssm_state_size(N_STATE)
    writer.add_ssm_time_step_rank(RANK)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_file_type(0)

    random = np.random.default_rng(20_260_101)

    def matrix(name: str, rows: int, columns: int, scale: float = 1.0) -> None:
        weights = random.standard_normal((rows, columns), dtype=np.float32) * scale / columns**0.5
        writer.add_tensor(name, weights)

    def vector(name: str, size: int, value: float) -> None:
        writer.add_tensor(name, np.full(size, value, dtype=np.float32))

    matrix("token_embd.weight", n_vocab, N_EMBD)
    vector("output_norm.weight", N_EMBD, 1.0)
    for i in range(N_LAYER["mamba"]):
        block = f"blk.{i}"
        vector(f"{block}.attn_norm.weight", N_EMBD, 1.0)
        matrix(f"{block}.ssm_in.weight", 2 * inner, N_EMBD)
        matrix(f"{block}.ssm_conv1d.weight", inner, N_CONV)
        vector(f"{block}.ssm_conv1d.bias", inner, 0.0)
        matrix(f"{block}.ssm_x.weight", RANK + 2 * N_STATE, inner)
        matrix(f"{block}.ssm_dt.weight", inner, RANK)
        vector(f"{block}.ssm_dt.bias", inner, -2.0)
        # Each state fades at a pace of its own.
        writer.add_tensor(f"{block}.ssm_a", -np.tile(np.arange(1, N_STATE + 1, dtype=np.float32), (inner, 1)))
        vector(f"{block}.ssm_d", inner, 1.0)
        matrix(f"{block}.ssm_out.weight", N_EMBD, inner, 3.0)


def main(arch: str, vocabulary: Path, target: Path, template: Path | None) -> None:
    partial = target.with_name(target.name + ".part")
    writer = GGUFWriter(partial, arch)
    writer.add_name(f"tiny random {arch}")
    n_vocab = (add_tokenizer if vocabulary.is_dir() else copy_tokenizer)(writer, vocabulary)
    if template:
        writer.add_chat_template(json.loads(template.read_text("utf-8"))["chat_template"])
    if arch == "mamba":
        add_mamba(writer, n_vocab)
    else:
        add_network(writer, arch, n_vocab)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    partial.rename(target)


if __name__ == "__main__":
    if len(sys.argv) not in (4, 5) or sys.argv[1] not in N_LAYER:
        sys.exit(__doc__)
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), Path(sys.argv[4]) if len(sys.argv) == 5 else None)
