"""A coordinator and stage daemons started by hand, jobs for them, and the bare
program: what schedules.py measures."""

import array
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import tempfile

# Longer than anything here takes.
LIMIT = 600

JOB = """\
name: bench
model: {{family: gpt2, layers: {layers}, width: 8, heads: 1, context: 8, vocab: 16, tied_embeddings: false}}
data: {{train: tokens.bin, format: nanogpt}}
batch: {{global: {micro_batches}, micro_batch: 1}}
pipeline: {{stages: {ranks}, schedule: {schedule}{chunks}}}
optimizer: {{kind: sgd, lr: 0.01, clip_norm: 1.0}}
recovery: {{mode: none}}
threads_per_stage: 1
steps: {steps}
device: virtual
"""
# Bytes of a message of that job: width * sequence * sizeof(float).
PAYLOAD = 8 * 8 * 4


def ms(seconds):
  return f"{seconds * 1e3:g}ms"


class Shape:
  """A schedule on K ranks with M micro-batches, and the times of its ops."""

  def __init__(self, schedule, ranks, micro_batches, op, transfer=0.0):
    self.schedule, self.ranks = schedule, ranks
    self.micro_batches, self.op, self.transfer = micro_batches, op, transfer
    self.chunks = {"interleaved": 2, "zb-v": 2, "v-half": 2,
                   "auto": 2}.get(schedule)

  def __str__(self):
    name = f"{self.schedule}-{self.ranks}-{self.micro_batches}-{ms(self.op)}"
    return name + (f"-{ms(self.transfer)}" if self.transfer else "")


class Failed(Exception):
  """What was to be measured does not run."""


class Programs:
  """The built programs, and a folder for all that they leave."""

  def __init__(self, build):
    build = pathlib.Path(build).resolve()
    self.bin, self.bare = build / "bin", build / "benchmarks/bare_pipeline"
    self.folder = pathlib.Path(tempfile.mkdtemp(prefix="penstock-bench-",
                                               dir="/tmp"))
    tokens = array.array("H", random.Random(7).choices(range(16), k=20000))
    with open(self.folder / "tokens.bin", "wb") as file:
      tokens.tofile(file)
    self.failed = False
    self._runs = 0
    self._orders = {}

  def __enter__(self):
    return self

  def __exit__(self, *_):
    shutil.rmtree(self.folder, ignore_errors=True)

  def not_measured(self, what, failure):
    """The line that says so."""
    self.failed = True
    return f"\nNot measured: {what}: {failure}\n"

  def new_name(self, what):
    self._runs += 1
    return self.folder / f"{self._runs:04d}-{what}"

  def keep_order(self, shape, text):
    """The schedule's order as CSV, for the bare program."""
    path = self.new_name("orders.csv")
    path.write_text(text)
    stages = 1 + max(int(stage) for stage in re.findall(r"(\d+)F", text))
    self._orders[str(shape)] = path, stages // shape.ranks

  def order(self, shape):
    """The one that was kept: else as `penstock simulate` gives it."""
    if str(shape) not in self._orders:
      done = subprocess.run(
          [self.bin / "penstock", "simulate", "--schedule", shape.schedule,
           "--stages", str(shape.ranks),
           "--micro-batches", str(shape.micro_batches),
           *(["--chunks", str(shape.chunks)] if shape.chunks else []),
           "--forward", str(shape.op), "--backward-input", str(shape.op),
           "--backward-weight", str(shape.op),
           "--transfer", str(shape.transfer), "-o", "csv"],
          capture_output=True, text=True, timeout=LIMIT)
      if done.returncode != 0:
        raise Failed(done.stderr.strip())
      self.keep_order(shape, done.stdout)
    return self._orders[str(shape)]

  def run_bare(self, shape, steps, barrier=True):
    """The bare program's JSON."""
    path, chunks = self.order(shape)
    command = [self.bare, f"file:{path}", f"--ranks={shape.ranks}",
               f"--chunks={chunks}", f"--micro-batches={shape.micro_batches}",
               f"--forward={ms(shape.op)}", f"--backward-input={ms(shape.op)}",
               f"--backward-weight={ms(shape.op)}",
               f"--transfer={ms(shape.transfer)}", f"--payload={PAYLOAD}",
               f"--steps={steps}"]
    done = subprocess.run(command + ([] if barrier else ["--no-barrier"]),
                          capture_output=True, text=True, timeout=LIMIT)
    if done.returncode != 0:
      raise Failed(done.stderr.strip())
    return json.loads(done.stdout)


class Run:
  """What a job left."""

  def __init__(self, folder):
    self.folder = folder
    self.summary = json.loads((folder / "summary.json").read_text())
    self.lines = [json.loads(line) for line in
                  (folder / "metrics.jsonl").read_text().splitlines()]
    if self.summary["state"] != "SUCCEEDED":
      raise Failed(f"the job has {self.summary['state']}: "
                   f"{self.summary['cause']}")

  @property
  def seconds(self):
    """Of each step."""
    return [line["step_seconds"] for line in self.lines]

  def traced(self):
    """By step with full timings: (rank, start, end, name) of each op, in
    seconds, ascending."""
    trace = json.loads((self.folder / "trace.json").read_text())
    steps = {}
    for event in trace["traceEvents"]:
      if event["ph"] == "X":
        start = event["ts"] * 1e-6
        steps.setdefault(event["args"]["step"], []).append(
            (event["tid"], start, start + event["dur"] * 1e-6, event["name"]))
    return {step: sorted(ops) for step, ops in steps.items()}

  def order(self):
    """What each rank ran, as CSV."""
    rows = {}
    for rank, _, _, name in self.traced()[1]:
      rows.setdefault(rank, []).append(name)
    return "".join(",".join(rows[rank]) + "\n" for rank in sorted(rows))


class Cluster:
  """penstock-coordinator and a penstock-stage for each rank."""

  def __init__(self, programs, ranks, window=None):
    self._programs = programs
    self._children = []
    sockets = programs.new_name("s")
    self._address = f"unix:{sockets}/c"
    log = open(programs.new_name("coordinator.log"), "w")
    self.coordinator = self._start(
        log, "penstock-coordinator", "--embedded", "--listen", self._address,
        *(["--window", str(window)] if window else []))
    for _ in range(LIMIT * 100):
      if (sockets / "c").exists():
        break
      try:
        self.coordinator.wait(0.01)
        raise Failed("the coordinator has ended")
      except subprocess.TimeoutExpired:
        pass
    for rank in range(ranks):
      self._start(log, "penstock-stage", "--coordinator", self._address,
                  "--listen", f"unix:{sockets}/{rank}",
                  "--name", f"stage-{rank:02d}", "--device", "virtual",
                  "--threads", "1")

  def _start(self, log, program, *arguments):
    child = subprocess.Popen([self._programs.bin / program, *arguments,
                              "--die-with-parent", str(os.getpid())],
                             stdout=log, stderr=log, stdin=subprocess.DEVNULL)
    self._children.append(child)
    return child

  def __enter__(self):
    return self

  def __exit__(self, *_):
    for child in reversed(self._children):
      child.send_signal(signal.SIGCONT)
      child.terminate()
    for child in self._children:
      try:
        child.wait(5)
      except subprocess.TimeoutExpired:
        child.kill()
        child.wait()

  def submit(self, shape, steps):
    """Starts a job: the process that waits for its end, and its folder."""
    name = self._programs.new_name(shape)
    text = JOB.format(
        layers=max(shape.ranks * (shape.chunks or 1), 1),
        micro_batches=shape.micro_batches, ranks=shape.ranks,
        schedule=shape.schedule,
        chunks=f", chunks: {shape.chunks}" if shape.chunks else "",
        steps=steps)
    text += (f"virtual: {{forward: {ms(shape.op)}, "
             f"backward_input: {ms(shape.op)}, "
             f"backward_weight: {ms(shape.op)}, "
             f"transfer: {ms(shape.transfer)}}}\n")
    job = self._programs.folder / f"{name.name}.yaml"
    job.write_text(text)
    name.mkdir()
    waits = subprocess.Popen(
        [self._programs.bin / "penstock_submit_job", self._address, job, name],
        stderr=subprocess.PIPE, text=True)
    return waits, name

  def run(self, shape, steps):
    waits, folder = self.submit(shape, steps)
    _, stderr = waits.communicate(timeout=LIMIT)
    if waits.returncode != 0:
      raise Failed(stderr.strip())
    return Run(folder)


def git_revision():
  done = subprocess.run(["git", "describe", "--always", "--dirty"],
                        capture_output=True, text=True,
                        cwd=os.path.dirname(os.path.abspath(__file__)))
  return done.stdout.strip() or "unknown"
