"""Input that is refused: one clear message each, the exit code of the table, and
nothing that stays: no run directory, no `runs`, no process, no socket."""

import json
import re
import shutil
import struct
import subprocess
import unittest

import penstock_case as pc

# One key a line, so that a place is easy to see; a place is the key's.
JOB = """\
name: bad
model:
  family: gpt2
  layers: 4
  width: 32
  heads: 2
  context: 16
data:
  train: text.txt
batch:
  global: 8
  micro_batch: 2
pipeline:
  stages: 2
steps: 2
device: cpu
"""

FROM_JOB = """\
name: bad
model: {from: model}
data: {train: train.jsonl}
batch: {global: 8}
pipeline: {stages: 2}
steps: 2
"""


class BadInputTest(pc.PenstockCase):

  def setUp(self):
    super().setUp()
    self.write_job(JOB)

  def contents(self):
    return sorted(str(p.relative_to(self.work)) for p in self.work.rglob("*"))

  def refused(self, *wanted, arguments=(), code=2):
    """Runs job.yaml; expects `code`, every one of `wanted` (regular
    expressions) on stderr, nothing on stdout, and no trace."""
    before = self.contents()
    done = self.penstock("run", "job.yaml", *arguments)
    self.assertEqual(done.code, code, done)
    self.assertEqual(done.stdout, "", done)
    for each in wanted:
      self.assertRegex(done.stderr, each)
    self.assertEqual(self.contents(), before, "files that stay")
    self.assertNothingStays()
    return done

  def replaced(self, old, new):
    self.assertIn(old, JOB)
    self.write_job(JOB.replace(old, new))

  # --- the job file ---------------------------------------------------------

  def test_unknown_key(self):
    self.replaced("  global: 8", "  globall: 8")
    self.refused(r"job\.yaml:11:3: batch\.globall: ", "unknown key")

  def test_key_of_another_tool(self):
    self.replaced("steps: 2", "steps: 2\ngradient_accumulation_steps: 4")
    self.refused(r"job\.yaml:16:1: gradient_accumulation_steps: ",
                 r"batch\.global / \(batch\.micro_batch \* replicas\)")

  def test_wrong_type(self):
    self.replaced("layers: 4", "layers: four")
    self.refused(r"job\.yaml:4:3: model\.layers: expected a whole number",
                 "four")

  def test_all_at_once(self):
    self.replaced("layers: 4", "layers: four")
    job = (self.work / "job.yaml").read_text()
    self.write_job(job.replace("stages: 2", "stages: -1") + "bogus: 1\n")
    self.refused(r"job\.yaml:4:3: ", r"job\.yaml:14:3: ",
                 r"job\.yaml:17:1: bogus: ")

  def test_required_keys(self):
    self.write_job("name: bad\n")
    self.refused("model", r"data\.train", r"batch\.global", "steps")

  def test_not_yaml(self):
    self.write_job("name: [bad\n")
    self.refused(r"job\.yaml:\d+:\d+: ")

  def test_batch_not_divisible(self):
    self.replaced("micro_batch: 2", "micro_batch: 3")
    self.refused(r"job\.yaml:11:3: batch\.global: 8 ")

  def test_micro_batch_0(self):
    self.replaced("micro_batch: 2", "micro_batch: 0")
    self.refused(r"job\.yaml:12:3: batch\.micro_batch: ", '"0"')

  def test_more_stages_than_layers(self):
    self.replaced("stages: 2", "stages: 7")
    self.refused(r"job\.yaml:14:3: pipeline\.stages: 7 .* 4 blocks")
    self.replaced("stages: 2", "stages: 2")
    self.refused(r"penstock: --stages: 7 ", arguments=("--stages", "7"))

  def test_what_planning_refuses_names_the_flag_as_given(self):
    # No machine holds it, and all there is of `pipeline` is the flag's.
    self.replaced("pipeline:\n  stages: 2\n", "")
    self.refused(r"--stages: pipeline\.memory_limit: stage 0 needs \d+ bytes",
                 arguments=("--stages", "2", "--set", "model.width=65536"))

  def test_heads_do_not_divide_the_width(self):
    self.replaced("heads: 2", "heads: 3")
    self.refused(r"job\.yaml:6:3: model\.heads: 3 .*32")

  def test_vocabulary_too_small_for_the_tokenizer(self):
    self.replaced("  context: 16", "  context: 16\n  vocab: 100")
    self.refused(r"job\.yaml:8:3: model\.vocab: .*100.*256")

  def test_features_that_are_not_built(self):
    for setting, name in (
        ("replicas=2", "replica"), ("precision=bf16", "bf16"),
        ("device=cuda", "cuda"),
        ("pipeline.recompute=selective", "selective"),
        ("pipeline.mode=async-2bw", "asynchronous"),
        ("data.format=megatron", "Megatron"),
        ("resume_from=there", "resuming")):
      with self.subTest(setting):
        key = setting.split("=")[0]
        self.refused(rf"--set {re.escape(key)}: not built yet: .*{name}",
                     arguments=("--set", setting))
    self.replaced("  stages: 2", "  stages: auto")
    self.refused(r"job\.yaml:14:3: pipeline\.stages: not built yet")

  def test_set(self):
    self.refused(r"--set bogus\.key: .*unknown key",
                 arguments=("--set", "bogus.key=1"))
    self.refused(r"--set", "steps", arguments=("--set", "steps"))
    self.refused(r"--set steps: expected a whole number", "abc",
                 arguments=("--set", "steps=abc"))

  def test_job_file_that_is_none(self):
    before = self.contents()
    for argument, why in (("none.yaml", "cannot be read: No such file or directory"),
                          (".", "is a folder, not a file"),
                          ("/dev/zero", "is a pipe or a device")):
      done = self.penstock("run", argument)
      self.assertEqual(done.code, 2, done)
      self.assertIn(f"job file {argument}: {why}", done.stderr)
    self.assertEqual(self.contents(), before)

  def test_working_directory_that_is_gone(self):
    gone = self.folder / "gone"
    gone.mkdir()
    child = subprocess.Popen(
        ["sh", "-c", 'rmdir "$PWD"; exec "$0" "$@"', self.binaries / "penstock",
         "run", self.work / "job.yaml"], cwd=gone, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, env=self.environment())
    self.addCleanup(self._close, child)
    done = self.finish(child)
    self.assertEqual(done.code, 2, done)
    self.assertIn("the working directory does not exist any more", done.stderr)
    self.assertNothingStays()

  def test_text_that_is_not_utf8(self):
    self.refused(r'--run-dir: "a\\xff" is not UTF-8',
                 arguments=("--run-dir", b"a\xff"))

  def test_flags(self):
    self.refused("--bogus", arguments=("--bogus",))
    self.refused("--stages", arguments=("--stages", "0"))
    self.refused("--stages", arguments=("--stages", "two"))
    self.refused("-o|--output", arguments=("-o", "xml"))

  # --- the run directory ----------------------------------------------------

  def test_run_directory_not_empty(self):
    (self.work / "full").mkdir()
    (self.work / "full/mine.txt").write_text("mine")
    self.refused(r"full is not empty", arguments=("--run-dir", "full"))
    self.refused(r"text\.txt exists and is no folder",
                 arguments=("--run-dir", "text.txt"))

  def test_empty_run_directory_is_kept_and_emptied(self):
    (self.work / "empty").mkdir()
    self.replaced("text.txt", "none.txt")
    self.refused(r"none\.txt", arguments=("--run-dir", "empty"))

  def test_folders_above_the_run_directory_go_too(self):
    self.replaced("text.txt", "none.txt")
    self.refused(r"none\.txt", arguments=("--run-dir", "deep/er/run/"))

  def test_run_directory_that_cannot_be_made(self):
    for path, why in (("text.txt/run", "Not a directory"),
                      ("/proc/foo", "/proc/foo: No such file or directory"),
                      ("x" * 300, "File name too long")):
      with self.subTest(path):
        self.refused(why, arguments=("--run-dir", path))

  def test_plan_that_does_not_fit(self):
    self.refused(r"--set pipeline\.memory_limit: stage 0 needs \d+ bytes",
                 arguments=("--set", "pipeline.memory_limit=10KiB"))
    self.refused(r"--set pipeline\.partition: ", "3.* 4",
                 arguments=("--set", "pipeline.partition=[1, 2]"))

  # --- data -----------------------------------------------------------------

  def test_data_that_is_not_there(self):
    self.replaced("text.txt", "none.txt")
    done = self.refused(
        r"job\.yaml:9:3: .*data\.train.*none\.txt.*No such file")
    self.assertEqual(done.stderr.count("No such file"), 1, "said once")

  def test_data_that_is_no_file(self):
    (self.work / "folder").mkdir()
    self.refused(r"--set data\.train: .*folder",
                 arguments=("--set", "data.train=folder"))
    self.refused(r"--set data\.train: .*/dev/null: is a pipe or a device",
                 arguments=("--set", "data.train=/dev/null"))

  def test_data_that_is_empty(self):
    (self.work / "text.txt").write_text("")
    self.refused(r"job\.yaml:9:3: .*text\.txt", "empty|no ")

  def test_context_longer_than_the_data(self):
    self.replaced("context: 16", "context: 100000")
    self.refused(r"job\.yaml:\d+:\d+: ", "100000|100001", r"text\.txt")

  def test_sequence_longer_than_the_context(self):
    self.replaced("  train: text.txt", "  train: text.txt\n  sequence_length: 17")
    self.refused(r"job\.yaml:10:3: data\.sequence_length: .*17.*16")

  def test_validation_data_that_is_not_there(self):
    self.replaced("  train: text.txt",
                  "  train: text.txt\n  validation: none-such.txt")
    self.refused(r"job\.yaml:10:3: .*none-such\.txt")

  def test_evaluation_without_data(self):
    self.replaced("steps: 2", "steps: 2\nevaluate: {every: 1}")
    self.refused(r"job\.yaml:16:\d+: evaluate")

  def jsonl(self, *lines):
    (self.work / "ids.jsonl").write_text("".join(f"{l}\n" for l in lines))
    self.replaced("train: text.txt", "train: ids.jsonl")
    text = (self.work / "job.yaml").read_text()
    self.write_job(text.replace("  context: 16", "  context: 16\n  vocab: 256"))

  def test_jsonl_vocabulary_too_small(self):
    good = json.dumps({"input_ids": [1, 2, 3]})
    self.jsonl(good, json.dumps({"input_ids": [1, 256, 3]}), *[good] * 8)
    self.refused(r"job\.yaml:\d+:\d+: .*ids\.jsonl.*\b2\b", "256")

  def test_jsonl_line_of_another_length(self):
    good = json.dumps({"input_ids": [1, 2, 3]})
    self.jsonl(good, good, json.dumps({"input_ids": [1, 2, 3, 4]}))
    self.refused(r"job\.yaml:\d+:\d+: .*ids\.jsonl.*\b3\b", "4")

  def test_jsonl_that_is_no_json(self):
    self.jsonl(json.dumps({"input_ids": [1, 2, 3]}), '{"input_ids": [1, 2')
    self.refused(r"job\.yaml:\d+:\d+: .*ids\.jsonl.*\b2\b")

  # --- schedule files -------------------------------------------------------

  def test_schedule_files(self):
    rows = ["0F0,0F1,0F2,0F3,0B0,0B1,0B2,0B3", "1F0,1B0,1F1,1B1,1F2,1B2,1F3,1B3"]
    table = {
        "garbage": ([rows[0], rows[1] + "x"], r"bad\.csv:2:32: "),
        "twice": ([rows[0] + ",0F1", rows[1]], "0F1"),
        "missing": ([rows[0], rows[1][:-4]], r"1B3 .*is missing"),
        "rows": ([rows[0]], "row"),
        "range": ([rows[0].replace("F3", "F9"), rows[1]], "0F9"),
        "rank": (rows[::-1], "rank 0"),
        "order": ([rows[0], rows[1].replace("1F0,1B0", "1B0,1F0")], "1B0"),
        "descending": ([rows[0].replace("0B0,0B1", "0B1,0B0"),
                        "1F0,1F1,1B1,1B0,1F2,1B2,1F3,1B3"], "B0|B1"),
        "deadlock": ([rows[0].replace("0F1,0F2,0F3,0B0", "0B0,0F1,0F2,0F3"),
                      "1F0,1F1,1B0,1B1,1F2,1B2,1F3,1B3"], "0B0|1F1|cycle"),
    }
    self.replaced("  stages: 2", "  stages: 2\n  schedule: file:bad.csv")
    for name, (lines, wanted) in table.items():
      with self.subTest(name):
        (self.work / "bad.csv").write_text("\n".join(lines) + "\n")
        self.refused(r"job\.yaml:15:3: pipeline\.schedule: .*bad\.csv",
                     wanted)
    (self.work / "bad.csv").unlink()
    self.refused(r"job\.yaml:15:3: .*bad\.csv")

  # --- model folders --------------------------------------------------------

  def model(self, change):
    """A copy of gpt2_tiny whose safetensors header and data `change` alters:
    change(header, data) -> bytes of the file, or (header, data)."""
    source = pc.TEST_DATA / "parity/gpt2_tiny"
    folder = self.work / "model"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(source / "model", folder)
    shutil.copy(source / "train.jsonl", self.work)
    self.write_job(FROM_JOB)
    path = folder / "model.safetensors"
    path.chmod(0o644)
    content = path.read_bytes()
    (length,) = struct.unpack_from("<Q", content)
    changed = change(json.loads(content[8:8 + length]), content[8 + length:])
    if not isinstance(changed, bytes):
      header = json.dumps(changed[0]).encode()
      changed = struct.pack("<Q", len(header)) + header + changed[1]
    path.write_bytes(changed)

  def refused_model(self, *wanted):
    self.refused(r"job\.yaml:2:9: model\.from: .*model\.safetensors", *wanted)

  def test_untouched_copy_runs(self):
    self.model(lambda header, data: (header, data))
    self.succeed()

  def test_truncated_safetensors(self):
    for left in (4, 100, 30000, 881000):
      with self.subTest(left):
        def cut(header, data):
          text = json.dumps(header).encode()
          return (struct.pack("<Q", len(text)) + text + data)[:left]
        self.model(cut)
        self.refused_model(r"model\.safetensors")

  def test_missing_tensor(self):
    def change(header, data):
      entry = header.pop("transformer.h.2.mlp.c_fc.weight")
      begin, end = entry["data_offsets"]
      for other in header.values():
        if "data_offsets" in other and other["data_offsets"][0] >= end:
          other["data_offsets"] = [o - (end - begin)
                                   for o in other["data_offsets"]]
      return header, data[:begin] + data[end:]
    self.model(change)
    self.refused_model(r"h\.2\.mlp\.c_fc\.weight")

  def test_weights_that_are_not_finite(self):
    def change(header, data):
      at = header["transformer.h.2.mlp.c_fc.weight"]["data_offsets"][0] + 4 * 5
      return header, data[:at] + struct.pack("<f", float("nan")) + data[at + 4:]
    self.model(change)
    self.refused(r"INVALID_SPEC: model\.from: .*model\.safetensors: tensor "
                 r'"transformer\.h\.2\.mlp\.c_fc\.weight" holds nan at element 5 ')

  def test_unused_tensor(self):
    def change(header, data):
      header["surplus.weight"] = {"dtype": "F32", "shape": [2], "data_offsets":
                                  [len(data), len(data) + 8]}
      return header, data + b"\0" * 8
    self.model(change)
    self.refused_model(r"surplus\.weight")

  def test_overlapping_offsets(self):
    def change(header, data):
      a = header["transformer.h.0.ln_1.weight"]
      b = header["transformer.h.0.ln_1.bias"]
      b["data_offsets"] = a["data_offsets"]
      return header, data
    self.model(change)
    self.refused_model(r"ln_1|overlap")

  def test_wrong_dtype(self):
    def change(header, data):
      header["transformer.h.0.ln_1.weight"]["dtype"] = "I32"
      return header, data
    self.model(change)
    self.refused_model(r"ln_1\.weight", "I32")

  def test_wrong_shape(self):
    def change(header, data):
      header["transformer.h.0.ln_1.weight"]["shape"] = [32, 2]
      return header, data
    self.model(change)
    self.refused_model(r"ln_1\.weight")

  def config(self, **changes):
    self.model(lambda header, data: (header, data))
    path = self.work / "model/config.json"
    path.chmod(0o644)
    config = json.loads(path.read_text())
    config.update(changes)
    path.write_text(json.dumps(config))

  def test_config(self):
    for changes, wanted in (
        ({"activation_function": "relu"}, "activation_function"),
        ({"model_type": "bert"}, "model_type"),
        ({"n_head": 3}, "n_head|heads"),
        ({"n_layer": "four"}, "n_layer"),
        ({"vocab_size": 100}, "vocab|wte")):
      with self.subTest(changes):
        self.config(**changes)
        self.refused(r"job\.yaml:2:9: ", wanted)

  def test_model_folder_that_is_none(self):
    self.model(lambda header, data: (header, data))
    shutil.rmtree(self.work / "model")
    self.refused(r"job\.yaml:2:9: .*model")

  def test_line_longer_than_learned_positions(self):
    self.model(lambda header, data: (header, data))
    (self.work / "train.jsonl").write_text(
        (json.dumps({"input_ids": [1] * 66}) + "\n") * 16)
    self.refused(r"job\.yaml:\d+:\d+: .*64", "65")


if __name__ == "__main__":
  unittest.main()
