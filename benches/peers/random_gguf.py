#!/usr/bin/env python3
"""A GGUF file of random weights in the shapes and types of Llama 3.2 1B or Llama 3.1 8B in Q4_K_M, to measure memory and speed.

    python3 benches/peers/random_gguf.py --tokenizer SmolLM2-135M-Instruct.Q4_1.gguf --shape 1b random-1b.Q4_K_M.gguf

needs: numpy, gguf. The tokenizer is the given file's, with unused tokens up to the size of Llama's vocabulary. Codes are uniform, and scales
such that weights have a mean of 0 and a deviation of 0.02. The same file every time.
"""
import argparse
import gguf, numpy

SHAPES = {
    "1b": dict(layers=16, hidden=2048, inner=8192, heads=32, kv_heads=8, tied=True),
    "8b": dict(layers=32, hidden=4096, inner=14336, heads=32, kv_heads=8, tied=False),
}
VOCABULARY = 128256
Q4, Q6, F32 = gguf.GGMLQuantizationType.Q4_K, gguf.GGMLQuantizationType.Q6_K, gguf.GGMLQuantizationType.F32
BYTES = {Q4: 144, Q6: 210}


def half(value):
    return numpy.frombuffer(numpy.float16(value).tobytes(), numpy.uint8)


def blocks(random, kind, count):
    data = random.integers(0, 256, (count, BYTES[kind]), numpy.uint8)
    if kind == Q4:
        # d * s * (code - 7.5): the minimum's scale is the step's.
        s = random.integers(32, 64, (count, 8), numpy.uint8)
        data[:, 0:2], data[:, 2:4] = half(9e-5), half(7.5 * 9e-5)
        low, high = s[:, :4], s[:, 4:]
        data[:, 4:8] = data[:, 8:12] = low | high >> 4 << 6
        data[:, 12:16] = high & 15 | (high & 15) << 4
    else:
        s = random.integers(8, 16, (count, 16), numpy.int8) * random.choice(numpy.array([-1, 1], numpy.int8), (count, 16))
        data[:, 192:208], data[:, 208:210] = s.view(numpy.uint8), half(9e-5)
    return data


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output")
    parser.add_argument("--shape", choices=SHAPES, default="1b")
    parser.add_argument("--tokenizer", required=True, help="GGUF file with a tokenizer of type gpt2")
    args = parser.parse_args()
    shape, random = SHAPES[args.shape], numpy.random.default_rng(25)
    layers, hidden, inner = shape["layers"], shape["hidden"], shape["inner"]
    width = hidden // shape["heads"]
    writer = gguf.GGUFWriter(args.output, "llama")
    writer.add_name(f"random {args.shape}")
    writer.add_block_count(layers)
    writer.add_context_length(8192)
    writer.add_embedding_length(hidden)
    writer.add_feed_forward_length(inner)
    writer.add_head_count(shape["heads"])
    writer.add_head_count_kv(shape["kv_heads"])
    writer.add_rope_dimension_count(width)
    writer.add_rope_freq_base(500000.0)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(VOCABULARY)
    writer.add_file_type(15)
    writer.add_quantization_version(2)
    source = gguf.GGUFReader(args.tokenizer).fields
    field = lambda name: source[f"tokenizer.ggml.{name}"].contents()
    tokens, types = field("tokens"), field("token_type")
    unused = VOCABULARY - len(tokens)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(field("pre"))
    writer.add_token_list(tokens + [f"<|unused {i}|>" for i in range(unused)])
    writer.add_token_types(list(types) + [5] * unused)
    writer.add_token_merges(field("merges"))
    writer.add_bos_token_id(field("bos_token_id"))
    writer.add_eos_token_id(field("eos_token_id"))
    more = [i < layers // 8 or i >= 7 * layers // 8 or (i - layers // 8) % 3 == 2 for i in range(layers)]
    kv = shape["kv_heads"] * width
    tensors = [("token_embd.weight", VOCABULARY, hidden, Q6 if shape["tied"] else Q4), ("output_norm.weight", 0, hidden, F32)]
    if not shape["tied"]:
        tensors.append(("output.weight", VOCABULARY, hidden, Q6))
    for i in range(layers):
        fine = Q6 if more[i] else Q4
        tensors += [(f"blk.{i}.{name}.weight", rows, columns, kind) for name, rows, columns, kind in [
            ("attn_norm", 0, hidden, F32), ("attn_q", hidden, hidden, Q4), ("attn_k", kv, hidden, Q4), ("attn_v", kv, hidden, fine),
            ("attn_output", hidden, hidden, Q4), ("ffn_norm", 0, hidden, F32), ("ffn_gate", inner, hidden, Q4), ("ffn_up", inner, hidden, Q4),
            ("ffn_down", hidden, inner, fine)]]
    for name, rows, columns, kind in tensors:
        if kind == F32:
            writer.add_tensor_info(name, (columns,), numpy.dtype(numpy.float32), columns * 4)
        else:
            row = columns // 256 * BYTES[kind]
            writer.add_tensor_info(name, (rows, row), numpy.dtype(numpy.uint8), rows * row, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    for name, rows, columns, kind in tensors:
        writer.write_tensor_data(numpy.ones(columns, numpy.float32) if kind == F32 else blocks(random, kind, rows * columns // 256))
    writer.close()


if __name__ == "__main__":
    main()
