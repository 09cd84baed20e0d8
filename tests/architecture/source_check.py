#!/usr/bin/env python3
"""Checks that product code reaches the clock, the environment, the process
table, the C library's mathematics and the walk of a folder only where
docs/ARCHITECTURE.md says.

Usage: source_check.py ROOT. Prints one line a violation and exits 1.
"""
import os
import re
import sys

from sources import report, sources

# What must not be written, and the files that may, each with its reason.
RULES = [
    ("reads a clock",
     r"\babsl::Now\s*\("
     r"|\b(system|steady|high_resolution|utc)_clock::now\b"
     r"|\b(clock_gettime|gettimeofday|timespec_get|uv_now|uv_hrtime)\s*\("
     r"|\bstd::time\s*\(|(?<![\w:.>])time\s*\(\s*(nullptr|NULL|0)\s*\)",
     {
         "common/time/real_clock.cc": "the one clock",
         "common/rpc/deadline.cc": "gRPC's deadlines are wall clock times",
         "common/sync/mutex.h": "time-outs run on the steady clock",
         "common/log/log.cc": "stamps of lines",
     }),
    ("sleeps",
     r"\b(absl::SleepFor|sleep_for|sleep_until|usleep|nanosleep|"
     r"clock_nanosleep|uv_sleep)\s*\(|(?<![\w:.>])sleep\s*\(",
     {}),
    ("reads the environment",
     r"\b(secure_)?getenv\s*\(|\benviron\b|\buv_os_(getenv|environ)\s*\(",
     {
         "client/main.cc": "it is main",
         "client/child_process.cc": "children get it as it is",
     }),
    ("reads flags beside main's", r"\b(absl::GetFlag|ABSL_FLAG)\s*\(", {}),
    # The C library picks its code by the CPU: common/math has bits of its own.
    ("computes by the C library",
     r"\bstd::(exp|expm1|log|log1p|sin|cos|tan|tanh|pow|erf)[fl]?\s*\(",
     {
         "client/report/axis.cc": "drawing",
         "client/report/line_chart.cc": "drawing",
         "client/report/op_colors.cc": "drawing",
     }),
    # Its range-for throws on an error, whatever error_code it was made with.
    ("walks a folder", r"directory_iterator\b",
     {"common/file/folder.cc": "the one walk"}),
    # Children are spawned, and daemons are a service manager's: a fork copies
    # one thread of many, with the locks of all.
    ("forks", r"(?<![\w.>])(fork|vfork|daemon|clone)\s*\(", {}),
]

# Comments, strings and character literals: nothing of the code.
TEXT = re.compile(
    r'//[^\n]*|/\*.*?\*/'
    r'|R"(?P<mark>[^\s()\\]{0,16})\(.*?\)(?P=mark)"'
    r'|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9A-Fa-f])'(?:\\.|[^'\\\n])+'", re.DOTALL)


def code_of(source):
  """The source with as many lines, but without comments and literals."""
  return TEXT.sub(lambda match: '""' + "\n" * match.group().count("\n"), source)


def violations(root):
  unused = {(what, path) for what, _, homes in RULES for path in homes}
  for path, text in sources(root, ("common", "coordinator", "server",
                                   "client")):
    for number, line in enumerate(code_of(text).split("\n"), 1):
      for what, pattern, homes in RULES:
        if not re.search(pattern, line):
          continue
        if path in homes:
          unused.discard((what, path))
        else:
          yield f"{path}:{number}: {what}: {line.strip()}"
  for what, path in sorted(unused):
    if os.path.exists(os.path.join(root, path)):
      yield f"{path}: {what} no more: take it off the list"


if __name__ == "__main__":
  report(violations(sys.argv[1]))
