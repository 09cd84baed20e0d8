"""`model.from` in every form in which Hugging Face folders come: names without
prefix, shards, f16 and bf16, buffers of old versions, a tied head beside its
embedding. Each trains to the bits of the plain folder with the same values."""

import json
import shutil
import struct
import unittest

import penstock_case as pc

JOB = """\
model: {{from: {folder}}}
data: {{train: {train}, order: sequential}}
batch: {{global: 4, micro_batch: 2}}
pipeline: {{stages: {stages}}}
steps: 2
device: cpu
"""

SCALED_JOB = """\
model: {model}
data: {{train: train.jsonl, order: sequential}}
batch: {{global: 4, micro_batch: 2}}
pipeline: {{stages: {stages}}}
optimizer: {{kind: sgd, lr: 0.1, momentum: 0, weight_decay: 0}}
steps: {steps}
device: cpu
"""


def read_raw(path):
  """{name: (dtype, shape, bytes)} of a safetensors file."""
  data = path.read_bytes()
  (length,) = struct.unpack_from("<Q", data)
  header = json.loads(data[8:8 + length])
  header.pop("__metadata__", None)
  return {
      name: (entry["dtype"], entry["shape"],
             data[slice(*(8 + length + o for o in entry["data_offsets"]))])
      for name, entry in header.items()}


def write_raw(path, tensors):
  header, end = {}, 0
  for name, (dtype, shape, data) in tensors.items():
    header[name] = {"dtype": dtype, "shape": shape,
                    "data_offsets": [end, end + len(data)]}
    end += len(data)
  text = json.dumps(header).encode()
  path.write_bytes(struct.pack("<Q", len(text)) + text +
                   b"".join(data for _, _, data in tensors.values()))


def floats(data):
  return struct.unpack(f"<{len(data) // 4}f", data)


def to_f16(data):
  values = floats(data)
  return struct.pack(f"<{len(values)}e", *values)


def from_f16(data):
  values = struct.unpack(f"<{len(data) // 2}e", data)
  return struct.pack(f"<{len(values)}f", *values)


def to_bf16(data):  # The upper halves: rounded towards 0, as good as any.
  return b"".join(data[i + 2:i + 4] for i in range(0, len(data), 4))


def from_bf16(data):
  return b"".join(b"\0\0" + data[i:i + 2] for i in range(0, len(data), 2))


def f32(shape, *values):
  return ("F32", shape, struct.pack(f"<{len(values)}f", *values))


class ModelFolderTest(pc.PenstockCase):

  def copy_of(self, case, name):
    """A copy of the case's model folder without its tensors, and those."""
    source = pc.TEST_DATA / "parity" / case / "model"
    target = self.work / name
    target.mkdir()
    shutil.copy(source / "config.json", target)
    return target, read_raw(source / "model.safetensors")

  def write_job_of(self, case, folder, stages=2):
    self.write_job(JOB.format(
        folder=folder, stages=stages,
        train=pc.TEST_DATA / "parity" / case / "train.jsonl"))

  def weights(self, case, folder, stages=2):
    """weights_sha256 after some steps from `folder`."""
    self.write_job_of(case, folder, stages)
    return self.succeed(run_dir=f"run-{folder.name}")["weights_sha256"]

  def plain(self, case, convert=lambda data: data):
    folder, tensors = self.copy_of(case, f"plain-{case}")
    write_raw(folder / "model.safetensors",
              {name: (dtype, shape, convert(data))
               for name, (dtype, shape, data) in tensors.items()})
    return self.weights(case, folder)

  def test_names_without_prefix(self):
    for case, prefix in (("gpt2_untied_odd", "transformer."),
                         ("llama_tied", "model.")):
      with self.subTest(case):
        folder, tensors = self.copy_of(case, f"bare-{case}")
        bare = {name.removeprefix(prefix): tensor
                for name, tensor in tensors.items()}
        self.assertNotEqual(bare.keys(), tensors.keys())
        write_raw(folder / "model.safetensors", bare)
        self.assertEqual(self.weights(case, folder), self.plain(case))

  def test_shards(self):
    case = "llama_tied"
    folder, tensors = self.copy_of(case, "shards")
    weight_map = {}
    for shard in range(3):
      name = f"model-{shard + 1:05}-of-00003.safetensors"
      part = dict(list(tensors.items())[shard::3])
      write_raw(folder / name, part)
      weight_map |= dict.fromkeys(part, name)
    (folder / "model.safetensors.index.json").write_text(
        json.dumps({"metadata": {}, "weight_map": weight_map}))
    self.assertEqual(self.weights(case, folder, stages=3), self.plain(case))

  def test_half_precision(self):
    case = "gpt2_untied_odd"
    for dtype, to, back in (("F16", to_f16, from_f16),
                            ("BF16", to_bf16, from_bf16)):
      with self.subTest(dtype):
        folder, tensors = self.copy_of(case, dtype)
        write_raw(folder / "model.safetensors",
                  {name: (dtype, shape, to(data))
                   for name, (_, shape, data) in tensors.items()})
        expected = self.plain(case, lambda data: back(to(data)))
        self.assertEqual(self.weights(case, folder), expected)
        shutil.rmtree(self.work / f"plain-{case}")
        shutil.rmtree(self.work / f"run-plain-{case}")

  def test_buffers_and_other_files_are_ignored(self):
    case = "gpt2_masked"
    folder, tensors = self.copy_of(case, "old")
    for block in range(2):
      tensors[f"transformer.h.{block}.attn.bias"] = ("U8", [2, 2], b"\1\0\1\1")
      tensors[f"transformer.h.{block}.attn.masked_bias"] = f32([], -1e4)
    tensors["transformer.h.0.rotary_emb.inv_freq"] = f32([2], 1, 0.5)
    write_raw(folder / "model.safetensors", tensors)
    for name in ("pytorch_model.bin", "tokenizer.json", "README.md",
                 "training_args.bin", "other.safetensors"):
      (folder / name).write_text("not looked at")
    self.assertEqual(self.weights(case, folder), self.plain(case))

  def test_a_tied_head_must_equal_the_embedding(self):
    case = "gpt2_masked"
    folder, tensors = self.copy_of(case, "tied")
    dtype, shape, data = tensors["transformer.wte.weight"]
    tensors["lm_head.weight"] = (dtype, shape, data)
    write_raw(folder / "model.safetensors", tensors)
    self.assertEqual(self.weights(case, folder), self.plain(case))

    tensors["lm_head.weight"] = (dtype, shape, data[:-4] + b"\0\0\0\0")
    write_raw(folder / "model.safetensors", tensors)
    self.write_job_of(case, folder)
    done = self.run_job(run_dir="differs")
    self.assertEqual(done.code, 2, done)
    self.assertRegex(done.stderr, r'model\.safetensors: tensor "lm_head\.weight" '
                     r"differs from transformer\.wte\.weight")

  def test_a_scaled_llama_trains_on_from_what_it_wrote(self):
    # With SGD without momentum, and all data in each step, a job is what two of
    # half its length are, if the folder between them says all of the model.
    lines = [json.dumps({"input_ids": [(i * 7 + j * j) % 250
                                       for j in range(33)]}) for i in range(4)]
    (self.work / "train.jsonl").write_text("\n".join(lines) + "\n")
    weights = set()
    for kind, scaling in pc.ROPE_SCALINGS.items():
      with self.subTest(kind):
        def train(model, steps, run_dir, stages):
          self.write_job(SCALED_JOB.format(model=model, steps=steps,
                                           stages=stages))
          return self.succeed(run_dir=f"{kind}-{run_dir}")["weights_sha256"]

        llama = pc.SCALED_LLAMA.format(scaling=scaling)
        whole = train(llama, 4, "whole", 2)
        train(llama, 2, "half", 3)
        again = train(f"{{from: {kind}-half/model}}", 2, "again", 2)
        self.assertEqual(again, whole)
        weights.add(whole)
        config = json.loads(
            (self.work / f"{kind}-again/model/config.json").read_text())
        self.assertEqual(config["rope_scaling"]["rope_type"], kind)
    self.assertEqual(len(weights), len(pc.ROPE_SCALINGS))  # It matters.


if __name__ == "__main__":
  unittest.main()
