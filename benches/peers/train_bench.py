"""Speed of training number models with eager PyTorch on one thread: the peer of `earnest train number-model` in
benches/results/train-speed.md.

    python benches/peers/train_bench.py --size 2,64,256,4,2 --steps 100

The decoder has the shapes of a number model: RMS norms, rotary embedding, SwiGLU, tied embeddings, `scaled_dot_product_attention`, AdamW with
clipping, the loss on the answer's tokens only. As in earnest, the last layer computes only the rows from the first predicted token on. All
sequences have the same length, so there is no padding, and tokens are random: speed does not depend on them. Times are CPU time of
the process, which other load disturbs less than wall time.
"""
import argparse
import time

import torch
import torch.nn.functional as F
from torch import nn


def arguments():
    parser = argparse.ArgumentParser(description="Training speed of eager PyTorch on the shapes of a number model.")
    parser.add_argument("--size", default="2,64,256,4,2", help="layers, width, feed-forward width, heads, key/value heads")
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--tokens", type=int, default=23, help="tokens of a sequence")
    parser.add_argument("--answer", type=int, default=7, help="predicted tokens of a sequence")
    parser.add_argument("--vocabulary", type=int, default=344)
    parser.add_argument("--steps", type=int, default=60)
    return parser.parse_args()


class Norm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return F.rms_norm(x, self.weight.shape, self.weight, 1e-5)


class Block(nn.Module):
    def __init__(self, width, inner, heads, kv_heads):
        super().__init__()
        self.heads, self.kv_heads, self.head = heads, kv_heads, width // heads
        linear = lambda inputs, outputs: nn.Linear(inputs, outputs, bias=False)
        self.before, self.middle = Norm(width), Norm(width)
        self.q, self.o = linear(width, width), linear(width, width)
        self.k, self.v = linear(width, kv_heads * self.head), linear(width, kv_heads * self.head)
        self.gate, self.up, self.down = linear(width, inner), linear(width, inner), linear(inner, width)

    def forward(self, x, cos, sin, first):
        h = self.before(x)
        split = lambda y, count: y.view(len(x), -1, count, self.head).transpose(1, 2)
        half = self.head // 2

        def rotate(y, cos, sin):
            a, b = y[..., :half], y[..., half:]
            return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)

        q = rotate(split(self.q(h[:, first:]), self.heads), cos[first:], sin[first:])
        k, v = rotate(split(self.k(h), self.kv_heads), cos, sin), split(self.v(h), self.kv_heads)
        if first == 0:
            attended = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        else:
            length = x.shape[1]
            mask = torch.ones(length - first, length, dtype=torch.bool).tril(first)
            attended = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=True)
        x = x[:, first:] + self.o(attended.transpose(1, 2).reshape(len(x), -1, self.heads * self.head))
        h = self.middle(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class Decoder(nn.Module):
    def __init__(self, size, vocabulary):
        super().__init__()
        layers, width, inner, heads, kv_heads = size
        self.embedding = nn.Embedding(vocabulary, width)
        self.blocks = nn.ModuleList(Block(width, inner, heads, kv_heads) for _ in range(layers))
        self.norm = Norm(width)

    def forward(self, ids, cos, sin, answer):
        x = self.embedding(ids)
        for index, block in enumerate(self.blocks):
            x = block(x, cos, sin, ids.shape[1] - answer - 1 if index + 1 == len(self.blocks) else 0)
        return self.norm(x[:, -answer - 1 : -1]) @ self.embedding.weight.t()


def main():
    args = arguments()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    size = [int(number) for number in args.size.split(",")]
    model = Decoder(size, args.vocabulary)
    half = size[1] // size[3] // 2
    angles = torch.arange(args.tokens).float()[:, None] * 10_000 ** (-torch.arange(half).float() / half)
    cos, sin = angles.cos(), angles.sin()
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3)
    ids = torch.randint(0, args.vocabulary, (args.batch, args.tokens))
    seconds = []
    for _ in range(args.steps):
        started = time.process_time()
        logits = model(ids, cos, sin, args.answer).reshape(-1, args.vocabulary)
        loss = F.cross_entropy(logits, ids[:, -args.answer :].reshape(-1))
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        seconds.append(time.process_time() - started)
    seconds.sort()
    parameters = sum(parameter.numel() for parameter in model.parameters())
    median, mean = args.batch / seconds[len(seconds) // 2], args.batch * len(seconds) / sum(seconds)
    print(f"torch {torch.__version__}, {parameters} parameters: median {median:.0f}, mean {mean:.0f} questions/s")


if __name__ == "__main__":
    main()
