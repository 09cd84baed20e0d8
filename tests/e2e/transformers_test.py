"""transformers loads what Penstock writes, and Penstock loads it again: the
sharded RUN_DIR/model of a run of three stages, and one loss of the same ids.
Models of the parity cases, and Llamas with scaled positions.

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
model: {model}
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

  def check(self, model, train, batch, steps, model_class):
    """`model` as in a job file; `train` holds a batch for each of the steps."""
    self.write_job(JOB.format(model=model, train=train, batch=batch,
                              stages=STAGES, steps=steps))
    self.succeed(run_dir="trained")
    before = self.json_lines("metrics.jsonl", "trained")[0]["loss"]
    folder = self.work / "trained" / "model"
    shards = sorted(path.name for path in folder.glob("*.safetensors"))
    self.assertEqual(shards, [
        f"model-{i + 1:05}-of-{STAGES:05}.safetensors" for i in range(STAGES)])
    self.assertTrue((folder / "model.safetensors.index.json").exists())

    # The first step's loss is that of the weights as they were loaded.
    self.write_job(JOB.format(model=f"{{from: {folder}}}", train=train,
                              batch=batch, stages=2, steps=1))
    self.succeed(run_dir="again")
    (ours,) = self.json_lines("metrics.jsonl", "again")

    theirs = self.theirs(folder, train, batch)
    self.assertEqual(theirs["class"], model_class)
    for kind in ("missing", "unexpected", "mismatched"):
      self.assertEqual(theirs[kind], [], kind)
    self.assertEqual(theirs["valid"], ours["tokens"])
    # It has learned something: not the loss of the weights it began with.
    self.assertGreater(abs(ours["loss"] - before), 1e-3)
    difference = abs(ours["loss"] - theirs["loss"]) / theirs["loss"]
    print(f"{self.id()}: {theirs['versions']}: loss {theirs['loss']:.9f}, "
          f"ours differs by {difference:.1e}", file=sys.stderr)
    self.assertLessEqual(difference, LOSS)

  def check_case(self, case):
    folder = pc.TEST_DATA / "parity" / case
    expected = json.loads((folder / "expected.json").read_text())
    self.check(model=f"{{from: {folder / 'model'}}}",
               train=folder / "train.jsonl",
               batch=expected["sequences_per_step"],
               steps=len(expected["steps"]), model_class=CLASSES[case])

  def check_scaled(self, scaling):
    # Weights that are large enough for positions to matter.
    model = pc.SCALED_LLAMA.format(scaling=scaling).replace(
        "{family", "{init_std: 0.2, family")
    train = self.work / "train.jsonl"
    with train.open("w") as lines:
      for i in range(16):
        ids = [(i * 7 + j * j) % 250 for j in range(33)]
        labels = [-100 if j < i else token for j, token in enumerate(ids)]
        print(json.dumps({"input_ids": ids, "labels": labels}), file=lines)
    self.check(model=model, train=train, batch=4, steps=4,
               model_class="LlamaForCausalLM")


def add_test(name, check, *arguments):
  setattr(TransformersTest, f"test_{name}",
          lambda self: check(self, *arguments))


for each in CLASSES:
  add_test(each, TransformersTest.check_case, each)
for kind, each in pc.ROPE_SCALINGS.items():
  add_test(f"llama_scaled_{kind}", TransformersTest.check_scaled, each)

if __name__ == "__main__":
  unittest.main()
