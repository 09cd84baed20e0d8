"""What the end-to-end tests share: a folder of their own, the programs as child
processes, and the check that nothing of them stays behind.

PENSTOCK_BIN: folder of the built programs. PENSTOCK_TEST_DATA: tests/testdata.
"""

import hashlib
import json
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import tempfile
import time
import unittest

BINARIES = pathlib.Path(os.environ["PENSTOCK_BIN"])
TEST_DATA = pathlib.Path(os.environ["PENSTOCK_TEST_DATA"])

# For things that take milliseconds on an idle machine; reached only by a bug.
LONG = 60.0

TEXT = "".join(f"line {i}: the quick brown fox, {i * i} times\n"
               for i in range(200))

# A job of a fraction of a second. Tests add to it with --set.
TINY_JOB = """\
name: tiny
model: {family: gpt2, layers: 4, width: 32, heads: 2, context: 16}
data: {train: text.txt}
batch: {global: 8, micro_batch: 2}
pipeline: {stages: 2}
steps: 4
device: cpu
"""


# Of Llama with positions that are scaled, for --set and job files.
ROPE_SCALINGS = {
    "linear": "{rope_type: linear, factor: 2}",
    "llama3": "{rope_type: llama3, factor: 4, low_freq_factor: 1, "
              "high_freq_factor: 4, original_max_position_embeddings: 16}",
}

# model of a job file; {scaling} is one of these.
SCALED_LLAMA = ("{{family: llama, layers: 3, width: 32, heads: 4, kv_heads: 2, "
                "head_dim: 16, context: 32, vocab: 256, rope_theta: 10000, "
                "rope_scaling: {scaling}}}")


def processes_of(folder):
  """Pids of living processes that name `folder` on their command line."""
  found = {}
  for entry in pathlib.Path("/proc").iterdir():
    if not entry.name.isdigit():
      continue
    try:
      command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
      state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
      continue  # It has ended meanwhile.
    if str(folder) in command and state != "Z" and int(entry.name) != os.getpid():
      found[int(entry.name)] = command
  return found


def wait_until(condition, what, limit=LONG):
  """Polls until condition() is true and returns its value."""
  deadline = time.monotonic() + limit
  while True:
    value = condition()
    if value:
      return value
    if time.monotonic() > deadline:
      raise AssertionError(f"not within {limit} s: {what}")
    time.sleep(0.01)


class Finished:
  """A program that has ended: exit code and streams."""

  def __init__(self, code, stdout, stderr):
    self.code, self.stdout, self.stderr = code, stdout, stderr

  def __repr__(self):
    return f"exit code {self.code}\nstdout:\n{self.stdout}\nstderr:\n{self.stderr}"


class PenstockCase(unittest.TestCase):
  """Each test works in an empty folder `self.folder`; sockets of embedded
  clusters are made in `self.runtime`, which must be empty at the end."""

  maxDiff = None

  def setUp(self):
    self.folder = pathlib.Path(tempfile.mkdtemp(prefix="penstock-e2e-", dir="/tmp"))
    self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
    self.runtime = self.folder / "runtime"
    self.runtime.mkdir(mode=0o700)
    self.work = self.folder / "work"
    self.work.mkdir()
    (self.work / "text.txt").write_text(TEXT)
    self.variables = {}  # Of the environment, for children.
    self.binaries = BINARIES
    self.addCleanup(self._end_processes)

  def _end_processes(self):
    for pid in processes_of(self.folder):
      try:
        os.kill(pid, signal.SIGKILL)
      except ProcessLookupError:
        pass

  def environment(self):
    result = {k: v for k, v in os.environ.items()
              if not k.startswith("PENSTOCK_")}
    result.update(self.variables)
    result.update(XDG_RUNTIME_DIR=str(self.runtime), TMPDIR=str(self.runtime))
    return result

  def start(self, program, *arguments, **options):
    """Starts a program in self.work; its streams go to pipes of text."""
    return self.start_command([self.binaries / program, *arguments], **options)

  def start_command(self, command, **options):
    """As start(), for a command that is none of ours."""
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE,
               "stderr": subprocess.PIPE}
    child = subprocess.Popen(
        [a if isinstance(a, bytes) else str(a) for a in command], cwd=self.work,
        text=True, env=self.environment(), **{**streams, **options})
    self.addCleanup(self._close, child)
    return child

  @staticmethod
  def _close(child):
    if child.poll() is None:
      child.kill()
      child.wait()
    for stream in (child.stdout, child.stderr):
      if stream is not None:
        stream.close()

  def finish(self, child, limit=LONG):
    stdout, stderr = child.communicate(timeout=limit)
    return Finished(child.returncode, stdout, stderr)

  def penstock(self, *arguments):
    return self.finish(self.start("penstock", *arguments))

  def write_job(self, text=TINY_JOB, name="job.yaml"):
    path = self.work / name
    path.write_text(text)
    return path

  def run_job(self, *arguments, job="job.yaml", run_dir="run"):
    return self.penstock("run", job, "--run-dir", run_dir, *arguments)

  def succeed(self, *arguments, job="job.yaml", run_dir="run"):
    """Runs a job to its success; returns summary.json."""
    done = self.run_job(*arguments, job=job, run_dir=run_dir)
    self.assertEqual(done.code, 0, done)
    return self.summary(run_dir)

  def summary(self, run_dir="run"):
    return json.loads((self.work / run_dir / "summary.json").read_text())

  def json_lines(self, name, run_dir="run"):
    lines = (self.work / run_dir / name).read_text().splitlines()
    return [json.loads(line) for line in lines]

  def assertNothingStays(self, limit=5.0):
    """No process of ours, no socket, no folder for sockets."""
    wait_until(lambda: not processes_of(self.folder),
               f"no process is left: {processes_of(self.folder)}", limit)
    wait_until(lambda: not self.left_files(),
               f"{self.left_files()} are removed", limit)

  def left_files(self):
    # A program of the TSan build has one that is TSan's until its start is over.
    return [path for path in self.runtime.iterdir()
            if not path.name.startswith("tsan.rodata.")]


def read_safetensors(path):
  """{name: list of floats} of one f32 safetensors file."""
  data = path.read_bytes()
  (length,) = struct.unpack_from("<Q", data)
  header = json.loads(data[8:8 + length])
  header.pop("__metadata__", None)
  tensors = {}
  for name, entry in header.items():
    assert entry["dtype"] == "F32", (path, name, entry)
    begin, end = (8 + length + offset for offset in entry["data_offsets"])
    tensors[name] = struct.unpack(f"<{(end - begin) // 4}f", data[begin:end])
  return tensors


def read_model_folder(folder):
  """{name: list of floats} of a Hugging Face folder, sharded or not."""
  index = folder / "model.safetensors.index.json"
  if not index.exists():
    return read_safetensors(folder / "model.safetensors")
  weight_map = json.loads(index.read_text())["weight_map"]
  tensors = {}
  for shard in sorted(set(weight_map.values())):
    read = read_safetensors(folder / shard)
    assert all(weight_map[name] == shard for name in read), shard
    tensors.update(read)
  assert tensors.keys() == weight_map.keys()
  return tensors


def weights_sha256(folder):
  """summary.json's, from the tensors of a Hugging Face folder."""
  whole = hashlib.sha256()
  for name, values in sorted(read_model_folder(folder).items()):
    data = struct.pack(f"<{len(values)}f", *values)
    whole.update(name.encode() + b"\0" + hashlib.sha256(data).digest())
  return whole.hexdigest()
