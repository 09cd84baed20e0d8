"""PyTorch's side of model_step_benchmark: the same step, eager, on one process.

GPT-2 shaped models with a tied head, 16 sequences of 256 tokens in
micro-batches of 2, gradients clipped to 1, fused AdamW. Needs torch; preload
tcmalloc, the fastest allocator for it:

  LD_PRELOAD=libtcmalloc_minimal.so.4 OMP_NUM_THREADS=1 \
      python3 tests/benchmarks/pytorch/step.py --model a
"""
import argparse
import statistics
import time

import torch
from torch import nn
from torch.nn import functional

SIZES = {  # layers, width, heads: as step_benchmark.cc
    "a": (4, 256, 4),
    "b": (6, 512, 8),
}
VOCAB, SEQUENCE, SEQUENCES = 8192, 256, 16


class Block(nn.Module):

  def __init__(self, width, heads):
    super().__init__()
    self.heads = heads
    self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
    self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
    self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

  def forward(self, x):
    batch, seq, width = x.shape
    q, k, v = self.qkv(self.norm1(x)).view(
        batch, seq, 3, self.heads, width // self.heads).permute(
            2, 0, 3, 1, 4).unbind(0)
    mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    x = x + self.out(mixed.transpose(1, 2).reshape(batch, seq, width))
    return x + self.down(
        functional.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Model(nn.Module):

  def __init__(self, layers, width, heads):
    super().__init__()
    self.tokens = nn.Embedding(VOCAB, width)
    self.positions = nn.Embedding(SEQUENCE, width)
    self.blocks = nn.Sequential(*[Block(width, heads) for _ in range(layers)])
    self.norm = nn.LayerNorm(width)
    self.head = nn.Linear(width, VOCAB, bias=False)
    self.head.weight = self.tokens.weight
    for weight in self.parameters():
      if weight.dim() > 1:
        nn.init.normal_(weight, std=0.02)

  def forward(self, ids):
    x = self.tokens(ids) + self.positions.weight[:ids.shape[1]]
    return self.head(self.norm(self.blocks(x)))


def main():
  parser = argparse.ArgumentParser()
  parser.add_argument("--model", choices=SIZES, default="a")
  parser.add_argument("--threads", type=int, default=1)
  parser.add_argument("--micro-batch", type=int, default=2)
  parser.add_argument("--steps", type=int, default=5, help="after two more")
  flags = parser.parse_args()
  torch.set_num_threads(flags.threads)
  torch.set_flush_denormal(True)
  torch.manual_seed(1)
  model = Model(*SIZES[flags.model])
  optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, weight_decay=0.1,
                                fused=True)
  data = torch.randint(0, VOCAB, (SEQUENCES, SEQUENCE + 1))
  times = []
  for _ in range(2 + flags.steps):
    start = time.perf_counter()
    for piece in data.split(flags.micro_batch):
      logits = model(piece[:, :-1])
      loss = functional.cross_entropy(logits.reshape(-1, VOCAB),
                                      piece[:, 1:].reshape(-1))
      (loss * len(piece) / SEQUENCES).backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=True)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    times.append(time.perf_counter() - start)
  step = statistics.median(times[2:])
  print(f"model {flags.model}: {1e3 * step:.0f} ms a step, "
        f"{SEQUENCES * SEQUENCE / step:.0f} tokens/s")


if __name__ == "__main__":
  main()
