"""Says which tests ctest's last run of a build folder skipped, and why: ctest
itself counts a program whose every test is skipped as passed.

skipped_tests.py [--strict] BUILD_FOLDER...

Prints a line a skipped test. With --strict, which is for CI, it fails where one
is not in ALLOWED.
"""

import argparse
import dataclasses
import pathlib
import re
import sys


@dataclasses.dataclass(frozen=True)
class Skip:
  program: str  # As ctest names it.
  test: str     # "Suite.Name" or "Case.test_name".
  reason: str   # As the test says it.


@dataclasses.dataclass(frozen=True)
class Allowed:
  program: str
  test: str    # Regular expression, of all of it.
  reason: str  # Regular expression, of a part.
  why: str


ALLOWED = (
    Allowed("e2e_transformers_test", r"TransformersTest\.setUpClass",
            r"cannot import torch and transformers",
            "torch is no package of Debian 12, and GBs; PENSTOCK_TORCH_PYTHON "
            "names a Python that has it"),
    Allowed("e2e_storage_test", r"StorageTest\.test_disk_that_\w+",
            r"^no file system can be mounted here$",
            "containers may not mount without CAP_SYS_ADMIN"),
    Allowed("common_process_test",
            r"(EndWithin|LetStopSignalsEnd)Test\.EndsPidOneOfAContainerToo",
            r"^no new PID namespace is permitted here$",
            "containers may not unshare without CAP_SYS_ADMIN"),
    Allowed("e2e_daemon_test",
            r"DaemonTest\.test_(every_address_of_a_name_is_dialled"
            r"|sigterm_ends_a_daemon_that_looks_up_a_name)",
            r"^no file system can be mounted here$",
            "containers may not mount without CAP_SYS_ADMIN"),
    Allowed("e2e_daemon_test",
            r"DaemonTest\.test_sigterm_ends_a_daemon_that_is_pid_1",
            r"^no new PID namespace is permitted here$",
            "containers may not unshare without CAP_SYS_ADMIN"),
    Allowed("e2e_daemon_test", r"DaemonTest\.test_both_families_on_one_port",
            r"no IPv6 loopback", "containers often have IPv4 alone"),
    Allowed("rpc_cluster_test", r"RpcClusterTest\.AJobRunsOverIPv6",
            r"no IPv6 loopback", "containers often have IPv4 alone"),
)

# A program's part of ctest's log.
PROGRAM = re.compile(r"^\d+/\d+ Testing: (?P<name>\S+)\n(?P<body>.*?)"
                     r"^<end of output>$", re.MULTILINE | re.DOTALL)
# googletest: the message stands above the line, under its own place.
GTEST = re.compile(r"^\[  SKIPPED \] (?P<test>\S+)(, where .*)? \(\d+ ms\)$",
                   re.MULTILINE)
GTEST_REASON = re.compile(r":\d+: Skipped\n(?P<reason>.*?)\s*\Z", re.DOTALL)
GTEST_COUNT = re.compile(r"^\[  SKIPPED \] (\d+) tests?, listed below",
                         re.MULTILINE)
# unittest -v: "NAME (ID)", the first line of a docstring if there is one.
UNITTEST = re.compile(
    r"^(?P<name>\w+) \((?P<id>[\w.]+)\)(?:\n.*)? \.\.\. skipped "
    r"(?P<quote>['\"])(?P<reason>.*)(?P=quote)$", re.MULTILINE)
UNITTEST_COUNT = re.compile(r"^(?:OK|FAILED) \(.*?skipped=(\d+)", re.MULTILINE)


def of_program(program, output):
  """The Skips of one program's output."""
  skips = []
  last_end = 0
  for match in GTEST.finditer(output):
    reason = GTEST_REASON.search(output[last_end:match.start()])
    skips.append(Skip(program, match["test"],
                      reason["reason"] if reason else ""))
    last_end = match.end()
  for match in UNITTEST.finditer(output):
    case = match["id"].removesuffix("." + match["name"]).rpartition(".")[2]
    skips.append(Skip(program, f"{case}.{match['name']}", match["reason"]))
  counts = GTEST_COUNT.findall(output) + UNITTEST_COUNT.findall(output)
  missed = sum(map(int, counts)) - len(skips)
  if missed > 0:  # A line that something else has written into.
    skips.append(Skip(program, f"{missed} more", "see ctest's log"))
  return skips


def of_log(text):
  """The Skips of ctest's LastTest.log."""
  return [skip for match in PROGRAM.finditer(text)
          for skip in of_program(match["name"], match["body"])]


def allowed(skip):
  """Why CI may do without this test, or None."""
  for entry in ALLOWED:
    if (entry.program == skip.program and
        re.fullmatch(entry.test, skip.test) and
        re.search(entry.reason, skip.reason)):
      return entry.why
  return None


def main():
  parser = argparse.ArgumentParser()
  parser.add_argument("--strict", action="store_true")
  parser.add_argument("folders", nargs="+", type=pathlib.Path)
  arguments = parser.parse_args()
  refused = 0
  for folder in arguments.folders:
    log = folder / "Testing" / "Temporary" / "LastTest.log"
    for skip in of_log(log.read_text(errors="replace")):
      why = allowed(skip)
      refused += why is None
      print(f"skipped ({folder.name}): {skip.program}: {skip.test}: "
            f"{skip.reason}" +
            (f" (allowed: {why})" if why else " (not among those allowed in CI)"))
  if arguments.strict and refused:
    print(f"{refused} skipped tests that CI must run; tests/skips/"
          "skipped_tests.py says what it may do without", file=sys.stderr)
    return 1
  return 0


if __name__ == "__main__":
  sys.exit(main())
