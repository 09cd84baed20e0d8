"""transformers loads what Penstock writes, and Penstock loads it again: the
sharded RUN_DIR/model of a run of three stages, and one loss of the same ids.

Needs a Python with torch and transformers: the one that PENSTOCK_TORCH_PYTHON
names, or this one. Skipped, with the reason, where there is none.
"""

import json
import os
import pathlib
import subprocess
import sys
import unittest

import penstock_case as pc

PROGRAM = pathlib.Path(__file__).with_name("transformers_loss.py")
LOSS = 5e-6  # Relative, as against torch in general.

JOB = """\
model: {{from: {model}}}
data: {{train: {train}, order: sequential}}
batch: {{global: {batch}, micro_batch: 2}}
pipeline: {{stages: {stages}}}
optimizer: {{kind: adamw, lr: 1e-3}}
steps: {steps}
device: cpu
"""

STAGES = 3
CLASSES = {
    "gpt2_tiny": "GPT2LMHeadModel",
    "gpt2_untied_odd": "GPT2LMHeadModel",
    "llama_gqa": "LlamaForCausalLM",
    "llama_tied": "LlamaForCausalLM",
}


def find_python():
  """(interpreter, "") or (None, why there is none)."""
  named = os.environ.get("PENSTOCK_TORCH_PYTHON")
  python = named or sys.executable
  done = subprocess.run([python, "-c", "import torch, transformers"],
                        capture_output=True, text=True)
  if done.returncode == 0:
    return python, ""
  reason = (f"{python} cannot import torch and transformers: "
            f"{done.stderr.strip().splitlines()[-1:]}")
  if named:  # Asked for: no reason to be silent.
    raise RuntimeError(f"PENSTOCK_TORCH_PYTHON={reason}")
  return None, f"{reason}; set PENSTOCK_TORCH_PYTHON to one that can"


class TransformersTest(pc.PenstockCase):

  @classmethod
  def setUpClass(cls):
    cls.python, reason = find_python()
    if cls.python is None:
      raise unittest.SkipTest(reason)

  def theirs(self, folder, sequences, count):
    done = subprocess.run(
        [self.python, "-B", PROGRAM, folder, sequences, str(count)],
        capture_output=True, text=True,
        env=self.environment() | {"HF_HUB_OFFLINE": "1"})
    self.assertEqual(done.returncode, 0, done.stderr)
    return json.loads(done.stdout)

  def check(self, case):
    folder = pc.TEST_DATA / "parity" / case
    train = folder / "train.jsonl"
    expected = json.loads((folder / "expected.json").read_text())
    batch = expected["sequences_per_step"]
    self.write_job(JOB.format(model=folder / "model", train=train, batch=batch,
                              stages=STAGES, steps=len(expected["steps"])))
    self.succeed(run_dir="trained")
    model = self.work / "trained" / "model"
    shards = sorted(path.name for path in model.glob("*.safetensors"))
    self.assertEqual(shards, [
        f"model-{i + 1:05}-of-{STAGES:05}.safetensors" for i in range(STAGES)])
    self.assertTrue((model / "model.safetensors.index.json").exists())

    # The first step's loss is that of the weights as they were loaded.
    self.write_job(JOB.format(model=model, train=train, batch=batch, stages=2,
                              steps=1))
    self.succeed(run_dir="again")
    (ours,) = self.json_lines("metrics.jsonl", "again")

    theirs = self.theirs(model, train, batch)
    self.assertEqual(theirs["class"], CLASSES[case])
    for kind in ("missing", "unexpected", "mismatched"):
      self.assertEqual(theirs[kind], [], kind)
    self.assertEqual(theirs["valid"], ours["tokens"])
    # It has learned something: not the loss of the weights it began with.
    self.assertGreater(
        abs(ours["loss"] - expected["steps"][0]["loss"]), 1e-3)
    difference = abs(ours["loss"] - theirs["loss"]) / theirs["loss"]
    print(f"{case}: {theirs['versions']}: loss {theirs['loss']:.9f}, "
          f"ours differs by {difference:.1e}", file=sys.stderr)
    self.assertLessEqual(difference, LOSS)


def add_case(case):
  setattr(TransformersTest, f"test_{case}", lambda self: self.check(case))


for each in CLASSES:
  add_case(each)

if __name__ == "__main__":
  unittest.main()
