#!/usr/bin/env python3
"""Schedules as they really run, on the `virtual` device: realisation, the
barrier, the coordinator's tax, a coordinator that is stopped, and exposed
transfers, each beside the bare program that only waits (bare_pipeline.cc).

  ./dev bench schedules [--quick] [--parts tax,stopped] [--schedules 1f1b,zb-h2]

Prints a table and writes it to build/bench/schedules.md. The whole takes about
half an hour, --quick some minutes. Nothing else should run meanwhile; where
something does, `chrt -r 10 ./dev bench schedules` puts both sides before it.
"""

import argparse
import datetime
import os
import pathlib
import platform
import shlex
import signal
import sys

import cluster
import parts

ROOT = pathlib.Path(__file__).resolve().parents[3]


class Settings:
  """How much is measured: all of it."""
  ranks = 8
  schedules = parts.SCHEDULES
  micro_batches = (24, 64)
  realised_ops = (0.020, 0.005)
  rounds, steps = 2, 4
  barrier_op = 0.005
  tax_ranks, tax_ops = (8, 16), (0.005, 0.001)
  tax_rounds, tax_steps = 4, 11
  stops = 5
  transfer_op = 0.020


class Quick(Settings):
  """Some minutes."""
  micro_batches = (24,)
  realised_ops = (0.005,)
  tax_ranks = (8,)
  tax_steps = 8
  stops = 3
  transfer_op = 0.005


class Smoke(Settings):
  """Seconds: everything runs, and the figures mean nothing."""
  ranks = 2
  schedules = ("1f1b",)
  micro_batches = (4,)
  realised_ops = (0.001,)
  rounds, steps = 1, 3
  barrier_op = 0.001
  tax_ranks, tax_ops = (2,), (0.001,)
  tax_rounds, tax_steps = 1, 3
  stops = 1
  transfer_op = 0.001


def machine():
  models = [line.partition(":")[2].strip()
            for line in open("/proc/cpuinfo", encoding="utf-8")
            if line.startswith("model name")]
  return (f"{len(models)} × {models[0] if models else platform.machine()}, "
          f"Linux {platform.release()}")


def now():
  return datetime.datetime.now().strftime("%Y-%m-%d %H:%M")


def main():
  parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
  parser.add_argument("--quick", action="store_true", help="some minutes")
  parser.add_argument("--smoke", action="store_true",
                      help="seconds; the figures mean nothing")
  parser.add_argument("--parts", default=",".join(parts.PARTS),
                      help=f"of {', '.join(parts.PARTS)}")
  parser.add_argument("--schedules", help="instead of " +
                      ", ".join(parts.SCHEDULES))
  parser.add_argument("--build", default=ROOT / "build/dev",
                      help="folder of the build (build/dev)")
  parser.add_argument("--out", default=ROOT / "build/bench/schedules.md")
  arguments = parser.parse_args()
  signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # And tidy up.
  settings = (Smoke if arguments.smoke else
              Quick if arguments.quick else Settings)
  if arguments.schedules:
    settings.schedules = tuple(arguments.schedules.split(","))
  wanted = arguments.parts.split(",")
  unknown = [part for part in wanted if part not in parts.PARTS]
  if unknown:
    parser.error(f"no part {', '.join(unknown)}; there are "
                 f"{', '.join(parts.PARTS)}")

  def say(what):
    print(f"{now()} {what}", file=sys.stderr, flush=True)

  text = ["# Schedules as they run\n", None]
  begun = f"load {os.getloadavg()[0]:.2f} at the start"
  with cluster.Programs(arguments.build) as programs:
    for part in wanted:
      try:
        text.append(parts.PARTS[part](programs, settings, say))
      except cluster.Failed as failure:
        text.append(f"## {part}\n" + programs.not_measured(part, failure))
  text[1] = (f"{now()}, {machine()}; {begun}, {os.getloadavg()[0]:.2f} at the "
             f"end; {cluster.git_revision()}; device virtual.\n\n"
             f"    {shlex.join(sys.argv)}\n")
  whole = "\n".join(text)
  out = pathlib.Path(arguments.out)
  out.parent.mkdir(parents=True, exist_ok=True)
  out.write_text(whole, encoding="utf-8")
  print(whole)
  return 1 if programs.failed else 0


if __name__ == "__main__":
  sys.exit(main())
