"""Writes a small Llama in the types of llama.cpp's Q4_K_M: python q4_k_m.py OUTPUT.gguf.gz

Needs the PyPI package gguf (0.19 wrote test/data/plan/q4_k_m.gguf.gz). All weights are 0.
"""
import gzip
import os
import sys
import tempfile

import gguf
import numpy
from gguf import GGMLQuantizationType as Type

HIDDEN, WIDTH, LAYERS, HEADS, KV_HEADS, VOCABULARY = 256, 512, 4, 4, 2, 300


def add(writer, name, rows, columns, kind):
    """A matrix of zeros; of F32 a vector."""
    if kind == Type.F32:
        writer.add_tensor(name, numpy.zeros((columns,), dtype=numpy.float32))
        return
    block, size = gguf.GGML_QUANT_SIZES[kind]
    writer.add_tensor(name, numpy.zeros((rows, columns // block * size), dtype=numpy.uint8), raw_dtype=kind)


def write(path):
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("small")
    writer.add_block_count(LAYERS)
    writer.add_context_length(4096)
    writer.add_embedding_length(HIDDEN)
    writer.add_feed_forward_length(WIDTH)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_rope_freq_base(500000.0)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_Q4_K_M)
    writer.add_vocab_size(VOCABULARY)
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list([f"token{number}" for number in range(VOCABULARY)])
    writer.add_token_types([1] * VOCABULARY)
    writer.add_token_merges([f"a{number} b" for number in range(50)])
    writer.add_bos_token_id(1)
    writer.add_add_bos_token(True)
    add(writer, "token_embd.weight", VOCABULARY, HIDDEN, Type.Q4_K)
    add(writer, "output.weight", VOCABULARY, HIDDEN, Type.Q6_K)
    add(writer, "output_norm.weight", 1, HIDDEN, Type.F32)
    for layer in range(LAYERS):
        more = Type.Q6_K if layer % 2 == 0 else Type.Q4_K  # use_more_bits of llama.cpp
        add(writer, f"blk.{layer}.attn_norm.weight", 1, HIDDEN, Type.F32)
        add(writer, f"blk.{layer}.ffn_norm.weight", 1, HIDDEN, Type.F32)
        add(writer, f"blk.{layer}.attn_q.weight", HIDDEN, HIDDEN, Type.Q4_K)
        add(writer, f"blk.{layer}.attn_k.weight", KV_HEADS * HIDDEN // HEADS, HIDDEN, Type.Q4_K)
        add(writer, f"blk.{layer}.attn_v.weight", KV_HEADS * HIDDEN // HEADS, HIDDEN, more)
        add(writer, f"blk.{layer}.attn_output.weight", HIDDEN, HIDDEN, Type.Q4_K)
        add(writer, f"blk.{layer}.ffn_gate.weight", WIDTH, HIDDEN, Type.Q4_K)
        add(writer, f"blk.{layer}.ffn_up.weight", WIDTH, HIDDEN, Type.Q4_K)
        add(writer, f"blk.{layer}.ffn_down.weight", HIDDEN, WIDTH, more)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.gguf")
        write(path)
        with open(path, "rb") as source, open(sys.argv[1], "wb") as target:
            target.write(gzip.compress(source.read(), 9, mtime=0))


main()
