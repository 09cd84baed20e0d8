"""The same job gives the same bits: weights_sha256 over depths, schedules,
recompute and threads for M = 1, 2, 4 and 8, dropout on, through real processes,
and as in one process without gRPC and tcp. (The whole grid in one process:
tests/server/executor/bits_grid_test.cc.)

PENSTOCK_IN_PROCESS_JOB: the program of tests/integration/in_process_job.cc.
"""

import os
import subprocess
import tempfile
import unittest

import penstock_case as pc

STEPS = 20
GLOBAL = 8

JOB = f"""\
name: bits
model: {{family: gpt2, layers: 4, width: 32, heads: 2, context: 16, dropout: 0.1}}
data: {{train: text.txt, validation: 10%}}
batch: {{global: {GLOBAL}, micro_batch: 2}}
pipeline: {{stages: 1, schedule: naive}}
lr_schedule: {{kind: cosine, warmup_steps: 2, min_ratio: 0.1}}
evaluate: {{every: 5, batches: 1}}
steps: {STEPS}
device: cpu
threads_per_stage: 1
"""

# By M: K, schedule, recompute, threads a stage; the first is the measure.
CELLS = {
    1: [
        (1, "naive", "none", 1),
        (3, "gpipe", "full", 2),
        (4, "1f1b", "none", 1),
    ],
    2: [
        (1, "gpipe", "none", 2),
        (2, "1f1b", "full", 1),
        (4, "naive", "none", 1),
    ],
    4: [
        (1, "naive", "none", 1),
        (1, "gpipe", "full", 2),
        (2, "1f1b", "none", 1),
        (2, "naive", "full", 2),
        (2, "gpipe", "none", 2),
        (3, "1f1b", "full", 1),
        (3, "gpipe", "full", 2),
        (3, "naive", "none", 1),
        (4, "1f1b", "none", 2),
        (4, "gpipe", "none", 1),
        (4, "naive", "full", 1),
        (2, "interleaved", "none", 1),
        (3, "looped-bfs", "full", 1),
        (3, "zb1p-interleaved", "none", 1),
        (2, "v-half", "full", 1),
    ],
    8: [
        (1, "1f1b", "full", 2),
        (2, "gpipe", "full", 1),
        (3, "1f1b", "none", 2),
        (4, "1f1b", "full", 1),
        (4, "zb-h1", "none", 1),
        (3, "zb-h2", "full", 1),
        (3, "zb-v", "none", 2),
        (3, "v-min", "none", 1),
        (2, "dualpipe-v", "full", 1),
        (3, "auto", "none", 1),
        (2, "file:orders.csv", "none", 1),
    ],
}

# By hand: rank 0 splits its backwards, rank 1 does not.
ORDERS = "\n".join([
    ",".join([f"0F{m}" for m in range(8)] + [f"0I{m}" for m in range(8)] +
             [f"0W{m}" for m in range(8)]),
    ",".join(f"1{op}{m}" for m in range(8) for op in "FB"),
]) + "\n"

REFERENCE_CELLS = [
    (1, "1f1b", "none", 1),
    (4, "gpipe", "full", 1),
]


class BitsTest(pc.PenstockCase):

  @staticmethod
  def settings(cell, device, micro_batches):
    stages, schedule, recompute, threads = cell
    return [f"pipeline.stages={stages}", f"pipeline.schedule={schedule}",
            f"pipeline.recompute={recompute}", f"threads_per_stage={threads}",
            f"device={device}", f"batch.micro_batch={GLOBAL // micro_batches}"]

  def outcome(self, cell, device="cpu", micro_batches=4):
    """What must not depend on how the job is cut."""
    run_dir = "-".join(map(str, (*cell, device, micro_batches)))
    run_dir = run_dir.replace(":", "-")
    overrides = []
    for setting in self.settings(cell, device, micro_batches):
      overrides += ["--set", setting]
    summary = self.succeed(*overrides, run_dir=run_dir)
    self.assertEqual(len(summary["stages"]), cell[0])
    for stage in summary["stages"]:
      self.assertEqual(stage["peak_activation_bytes"]["measured"],
                       stage["peak_activation_bytes"]["predicted"], stage)
    losses = [(line["loss"], line["grad_norm"], line.get("validation_loss"))
              for line in self.json_lines("metrics.jsonl", run_dir)]
    return summary["weights_sha256"], losses

  def in_process(self, cell, device, micro_batches):
    """weights_sha256 of the same job file in one process."""
    done = subprocess.run(
        [os.environ["PENSTOCK_IN_PROCESS_JOB"], self.work / "job.yaml",
         tempfile.mkdtemp(dir=self.work), *self.settings(cell, device, micro_batches)],
        capture_output=True, text=True, timeout=pc.LONG, check=False)
    self.assertEqual(done.returncode, 0, done.stderr)
    return done.stdout.strip()

  def check(self, cells, device="cpu", micro_batches=4):
    self.write_job(JOB)
    (self.work / "orders.csv").write_text(ORDERS)
    measure = self.outcome(cells[0], device, micro_batches)
    self.assertRegex(measure[0], "^[0-9a-f]{64}$")
    self.assertEqual(len(measure[1]), STEPS)
    for cell in cells[1:]:
      with self.subTest(cell):
        self.assertEqual(self.outcome(cell, device, micro_batches), measure)
    # As many ranks on threads, over the inprocess transport.
    self.assertEqual(self.in_process(cells[-1], device, micro_batches),
                     measure[0])
    return measure

  def test_cpu(self):
    weights = set()
    for micro_batches, cells in CELLS.items():
      with self.subTest(micro_batches):
        weights.add(self.check(cells, micro_batches=micro_batches)[0])
    # M is part of what the bits depend on: these are different runs.
    self.assertEqual(len(weights), len(CELLS))

  def test_reference(self):
    self.check(REFERENCE_CELLS, device="reference")

  def test_another_seed_gives_other_bits(self):
    self.write_job(JOB)
    first = self.outcome(CELLS[4][0])
    self.write_job(JOB + "seed: 2\n")
    self.assertNotEqual(
        self.succeed(run_dir="second")["weights_sha256"], first[0])


if __name__ == "__main__":
  unittest.main()
