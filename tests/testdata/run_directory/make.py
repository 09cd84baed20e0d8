#!/usr/bin/env python3
"""Makes a run directory as the coordinator writes one, for the report's tests.

Usage: make.py OUT [--ranks K] [--micro-batches M] [--chunks v] [--steps N]
                   [--schedule 1f1b|gpipe] [--fail] [--seed S]

The files beside this script are `make.py tests/testdata/run_directory`. Losses
and times are invented; formats, keys and the relations between numbers (bubble,
percentiles, sums) are the coordinator's.
"""
import argparse
import hashlib
import json
import math
import os
import random
from datetime import datetime, timedelta, timezone

START = datetime(2026, 11, 29, 19, 2, 31, 204518, tzinfo=timezone.utc)
BATCH, TOKENS, SEQUENCES = 32, 128, 8256


def rfc3339(seconds):
  time = START + timedelta(seconds=seconds)
  return time.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def order(schedule, ranks, micro_batches, rank):
  """Commands of a rank as (op, micro-batch)."""
  if schedule == "gpipe":
    return ([("F", m) for m in range(micro_batches)] +
            [("B", m) for m in range(micro_batches)])
  warm = min(ranks - rank - 1, micro_batches)
  commands = [("F", m) for m in range(warm)]
  for m in range(micro_batches - warm):
    commands += [("F", m + warm), ("B", m)]
  return commands + [("B", m) for m in
                     range(micro_batches - warm, micro_batches)]


def run_step(schedule, ranks, micro_batches, cost, noise):
  """Per rank [(op, micro-batch, start, end)] in seconds."""
  todo = [order(schedule, ranks, micro_batches, r) for r in range(ranks)]
  done, clock = {}, [0.0] * ranks
  ran = [[] for _ in range(ranks)]
  while any(todo):
    for r in range(ranks):
      while todo[r]:
        op, m = todo[r][0]
        need = ("F", m, r - 1) if op == "F" else (
            ("B", m, r + 1) if r + 1 < ranks else ("F", m, r))
        if need in done:
          ready = done[need]
        elif op == "F" and r == 0:
          ready = 0.0
        else:
          break
        start = max(clock[r], ready + 60e-6 * random.uniform(.6, 2))
        length = cost[r] * (2.05 if op == "B" else 1)
        end = start + length * random.lognormvariate(0, noise)
        ran[r].append((op, m, start, end))
        done[(op, m, r)] = clock[r] = end
        todo[r].pop(0)
  return ran


def write(path, text):
  with open(path, "w", encoding="utf-8") as file:
    file.write(text)


def job_yaml(a):
  return f'''version: 1
name: "shakespeare"
model:
  dropout: 0
  family: gpt2
  layers: {2 * a.ranks}
  width: 256
  heads: 8
  ffn_width: 1024
  context: 128
  vocab: 256
  tied_embeddings: true
  norm_eps: 1e-05
  init_std: 0.02
data:
  train: "shakespeare.txt"
  format: text
  field: "text"
  order: shuffled
  sequence_length: 128
  validation: 5%
  tokenizer: byte
batch:
  global: {4 * a.micro_batches}
  micro_batch: 4
pipeline:
  stages: {a.ranks}
  schedule: {a.schedule}
  chunks: 1
  recompute: none
  partition: auto
  memory_limit: none
  rebalance: false
  mode: sync
replicas: 1
precision: f32
optimizer:
  kind: adamw
  lr: 0.001
  betas: [0.9, 0.95]
  eps: 1e-08
  weight_decay: 0.1
  clip_norm: 1
  momentum: 0
  on_nonfinite: fail
lr_schedule:
  kind: cosine
  warmup_steps: {a.steps // 12}
  decay_steps: {a.steps}
  min_ratio: 0.1
steps: {a.steps}
epochs: none
seed: 1
'''


def learning_rate(t, steps):
  warm = steps // 12
  if t < warm:
    return 1e-3 * (t + 1) / warm
  share = (t - warm) / max(1, steps - warm)
  return 1e-3 * (0.1 + 0.9 * 0.5 * (1 + math.cos(math.pi * share)))


def events_of(a, last_step, end):
  events = []

  def add(seconds, severity, kind, message, stage="", step=0,
          consequence=False):
    events.append({"time": rfc3339(seconds), "severity": severity,
                   "kind": kind, "message": message, "stage": stage,
                   "step": step, "consequence": consequence})

  add(-1.9, "INFO", "STATE", "QUEUED -> PLANNING")
  add(-1.8, "INFO", "NOTE", "recovery: replica is not built yet; none is used")
  add(-1.7, "INFO", "STATE", "PLANNING -> ASSEMBLING")
  add(-0.1, "INFO", "STATE", "ASSEMBLING -> RUNNING")
  if a.fail:
    lost = f"stage-{a.ranks // 2}"
    add(end, "WARNING", "SESSION_BROKEN",
        f"the session of {lost} broke; it works on with what it has", lost,
        last_step)
    add(end + .004, "WARNING", "TRANSPORT_TIMEOUT",
        f"edge from {lost} reset by peer", "stage-1", last_step, True)
    add(end + .012, "ERROR", "STAGE_EXITED", f"{lost} was killed by signal 9",
        lost, last_step)
    add(end + .013, "ERROR", "STAGE_LOST",
        f"{lost} is lost: its parent reaped it, killed by signal 9", lost,
        last_step)
    add(end + .02, "INFO", "STATE", "RUNNING -> FAILED", "", last_step)
  else:
    add(end + .8, "INFO", "STATE", "RUNNING -> SUCCEEDED", "", last_step)
  return events


def main():
  parser = argparse.ArgumentParser()
  parser.add_argument("out")
  parser.add_argument("--ranks", type=int, default=4)
  parser.add_argument("--micro-batches", type=int, default=8)
  parser.add_argument("--steps", type=int, default=160)
  parser.add_argument("--schedule", default="1f1b")
  parser.add_argument("--fail", action="store_true")
  parser.add_argument("--seed", type=int, default=1)
  a = parser.parse_args()
  random.seed(a.seed)
  os.makedirs(a.out, exist_ok=True)
  K, M = a.ranks, a.micro_batches
  cost = [2.9e-3 * (1.07 if r == 0 else 1.11 if r == K - 1 else 1)
          for r in range(K)]
  full = sorted({1, 2, 3} | set(range(10, a.steps + 1, 10)))
  kept = full[:3] + full[3:][-5:]
  metrics, events, trace = [], [], []
  busy_all, bubbles, seconds_all = [0.0] * K, [], []
  now = 0.0
  for step in range(1, a.steps + 1):
    timed = step in full
    if timed or step == 4:
      ran = run_step(a.schedule, K, M, cost, .05)
      base_span = max(c[3] for rank in ran for c in rank)
      base_busy = [sum(c[3] - c[2] for c in rank) for rank in ran]
    slow = 2.2 if step == 1 else random.lognormvariate(0, .015)
    tail = random.uniform(1.8e-3, 2.6e-3)
    scale = 1.0 if timed else slow
    seconds = base_span * scale + tail
    busy = [b * scale for b in base_busy]
    share = step / a.steps
    loss = (1.62 + 3.93 * math.exp(-9 * share) +
            .05 * math.exp(-share) * random.gauss(0, 1))
    line = {"step": step, "time": rfc3339(now + seconds),
            "epoch": (step - 1) * 4 * M // SEQUENCES, "loss": loss,
            "tokens": 4 * M * TOKENS, "lr": learning_rate(step - 1, a.steps),
            "grad_norm": (.55 + 4.2 * math.exp(-14 * share)) *
                         random.lognormvariate(0, .14),
            "step_seconds": seconds,
            "tokens_per_second": 4 * M * TOKENS / seconds,
            "bubble_rate": 1 - max(busy) / seconds if timed else None}
    if step % 20 == 0:
      line["validation_loss"] = 1.71 + 3.8 * math.exp(-9 * share)
    line.update({"skipped": False, "nonfinite": []})
    metrics.append(line)
    seconds_all.append(seconds)
    if timed:
      bubbles.append(line["bubble_rate"])
    for r in range(K):
      busy_all[r] += busy[r]
    if step in kept:
      for r, commands in enumerate(ran):
        for op, m, start, end in commands:
          trace.append({"name": f"{r}{op}{m}", "cat": op, "ph": "X", "pid": 0,
                        "tid": r, "ts": round((now + start) * 1e6, 3),
                        "dur": round((end - start) * 1e6, 3),
                        "args": {"step": step, "stage": r, "micro_batch": m}})
    now += seconds
  names = [{"name": "thread_name", "ph": "M", "pid": 0, "tid": r,
            "args": {"name": f"stage-{r}"}} for r in range(K)]

  ideal = run_step(a.schedule, K, M, cost, 0)
  predicted = 1 - (max(sum(c[3] - c[2] for c in rank) for rank in ideal) /
                   max(c[3] for rank in ideal for c in rank))
  warm = sorted(seconds_all[2:])
  promised = {
      "step_seconds": max(c[3] for rank in ideal for c in rank),
      "measured_step_seconds": warm[len(warm) // 2]}
  promised["realisation"] = (promised["step_seconds"] /
                             promised["measured_step_seconds"])
  promised.update({"bubble_rate": predicted, "span_bubble_rate": predicted})
  promised["ranks"] = [
      {"rank": r, "busy_seconds": sum(c[3] - c[2] for c in rank),
       "commands": [[f"{r}{op}{m}", round(start, 9), round(end, 9)]
                    for op, m, start, end in rank]}
      for r, rank in enumerate(ideal)]
  stages = []
  for r in range(K):
    peak = min(K - r, M) if a.schedule == "1f1b" else M
    activations = peak * 4 * 128 * (256 * 34 * 4) * 2
    rest = 2 * 789760 * 16 + (65536 * 16 if r in (0, K - 1) else 0)
    stages.append({
        "rank": r, "name": f"stage-{r}", "host": "build-7",
        "chunks": [{"stage": r, "blocks": [2 * r, 2 * r + 2],
                    "embedding": r == 0, "head": r == K - 1}],
        "peak_bytes": {"predicted": activations + rest,
                       "measured": activations + rest},
        "peak_activation_bytes": {"predicted": activations,
                                  "measured": activations},
        "peak_in_flight": peak, "busy_seconds": busy_all[r]})
  reason = "STAGE_LOST" if a.fail else None
  lost = f"stage-{K // 2}"
  validations = [m["validation_loss"] for m in metrics
                 if "validation_loss" in m]
  summary = {
      "name": "shakespeare", "id": "shakespeare-k3x9a",
      "state": "FAILED" if a.fail else "SUCCEEDED", "reason": reason,
      "cause": {"stage": lost, "message":
                f"{lost} is lost: its parent reaped it, killed by signal 9"}
               if a.fail else None,
      "steps": a.steps, "tokens": sum(m["tokens"] for m in metrics),
      "final_loss": metrics[-1]["loss"],
      "validation_loss": validations[-1] if validations else None,
      "weights_sha256": None if a.fail else
                        hashlib.sha256(b"weights").hexdigest(),
      "tokens_per_second": sum(m["tokens"] for m in metrics) / now,
      "step_seconds": {"p50": warm[len(warm) // 2],
                       "p90": warm[math.ceil(len(warm) * .9) - 1]},
      "bubble_rate": {"predicted": predicted,
                      "measured": sorted(bubbles)[len(bubbles) // 2]},
      "pipeline": {"schedule": a.schedule, "ranks": K, "chunks": 1,
                   "micro_batches": M,
                   "closed_form": {"formula": "(K−1)/(M+K−1)",
                                   "bubble_rate": (K - 1) / (M + K - 1)}},
      "realisation": promised["realisation"], "stages": stages, "recoveries": [],
      "fingerprint": hashlib.sha256(b"job").hexdigest(),
      "versions": {"penstock": "0.1.0", "build": "50f73b2a90c4", "protocol": 1,
                   "numerics": "cpu/avx2/1/6f2b9c04", "devices": ["cpu"] * K}}
  events = events_of(a, a.steps, now)

  def lines(items):
    return "".join(json.dumps(item, separators=(",", ":")) + "\n"
                   for item in items)

  write(os.path.join(a.out, "job.yaml"), job_yaml(a))
  write(os.path.join(a.out, "metrics.jsonl"), lines(metrics))
  write(os.path.join(a.out, "events.jsonl"), lines(events))
  write(os.path.join(a.out, "summary.json"), json.dumps(summary, indent=2, ensure_ascii=False) +
        "\n")
  write(os.path.join(a.out, "predicted.json"),
        json.dumps(promised, separators=(",", ":")) + "\n")
  write(os.path.join(a.out, "trace.json"),
        json.dumps({"traceEvents": names + trace, "displayTimeUnit": "ms"},
                   separators=(",", ":")) + "\n")


if __name__ == "__main__":
  main()
