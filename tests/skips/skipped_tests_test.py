"""Skips are found in ctest's log, and only the listed ones are allowed."""

import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import skipped_tests
from skipped_tests import Skip

# As ctest 3.25 writes it.
LOG = """\
Start testing: Nov 30 07:17 UTC
----------------------------------------------------------
1/3 Testing: {program}
1/3 Test: {program}
Command: "/build/{program}"
Output:
----------------------------------------------------------
{output}
<end of output>
Test time =   3.01 sec
----------------------------------------------------------
Test Passed.

2/3 Testing: other_test
2/3 Test: other_test
Output:
----------------------------------------------------------
[       OK ] Other.Works (0 ms)
test_fine (__main__.Fine.test_fine) ... ok
<end of output>
Test Passed.
"""

GTEST = """\
[ RUN      ] EndWithinTest.EndsPidOneOfAContainerToo
/src/tests/common/process/signals_test.cc:88: Skipped
no new PID namespace is permitted here

[  SKIPPED ] EndWithinTest.EndsPidOneOfAContainerToo (4 ms)
[  PASSED  ] 10 tests.
[  SKIPPED ] 1 test, listed below:
[  SKIPPED ] EndWithinTest.EndsPidOneOfAContainerToo"""

STORAGE = """\
test_disk_that_fills_up (__main__.StorageTest.test_disk_that_fills_up)
A first line. ... skipped 'no file system can be mounted here'
test_files (__main__.StorageTest.test_files) ... ok

OK (skipped=1)"""

TRANSFORMERS = """\
setUpClass (__main__.TransformersTest) ... skipped '/usr/bin/python3 cannot \
import torch and transformers: []; set it'

OK (skipped=1)"""


def skips(program, output):
  return skipped_tests.of_log(LOG.format(program=program, output=output))


class SkippedTestsTest(unittest.TestCase):

  def test_each_framework_is_read(self):
    for program, output, test, reason in (
        ("common_process_test", GTEST,
         "EndWithinTest.EndsPidOneOfAContainerToo",
         "no new PID namespace is permitted here"),
        ("e2e_storage_test", STORAGE, "StorageTest.test_disk_that_fills_up",
         "no file system can be mounted here"),
        ("e2e_transformers_test", TRANSFORMERS, "TransformersTest.setUpClass",
         "/usr/bin/python3 cannot import torch and transformers: []; set it")):
      with self.subTest(program):
        found = skips(program, output)
        self.assertEqual(found, [Skip(program, test, reason)])
        self.assertTrue(skipped_tests.allowed(found[0]))

  def test_a_garbled_line_is_counted_all_the_same(self):
    found = skips("e2e_x_test", "test_x (__main__.X.test_x) ... noise\n"
                  "skipped 'why'\n\nOK (skipped=1)")
    self.assertEqual([skip.test for skip in found], ["1 more"])
    self.assertIsNone(skipped_tests.allowed(found[0]))

  def test_another_test_or_reason_is_not_allowed(self):
    (storage,) = skips("e2e_storage_test", STORAGE)
    for changed in (Skip(storage.program, storage.test, "not in the mood"),
                    Skip(storage.program, "StorageTest.test_files",
                         storage.reason),
                    Skip("e2e_data_test", storage.test, storage.reason)):
      self.assertIsNone(skipped_tests.allowed(changed), changed)

  def test_the_list_names_tests_that_exist(self):
    tests = pathlib.Path(skipped_tests.__file__).parents[1]
    programs = "".join(path.read_text()
                       for path in tests.rglob("CMakeLists.txt"))
    names = {"TransformersTest.setUpClass"}
    for path in tests.rglob("*_test.cc"):
      names |= {".".join(match) for match in re.findall(
          r"^TEST_?[FP]?\((\w+),\s+(\w+)\)", path.read_text(), re.MULTILINE)}
    for path in (tests / "e2e").glob("*_test.py"):
      case = ""
      for kind, name in re.findall(r"^ *(class|def) (\w+)", path.read_text(),
                                   re.MULTILINE):
        case = name if kind == "class" else case
        names.add(f"{case}.{name}")
    for entry in skipped_tests.ALLOWED:
      self.assertRegex(programs, rf"\b{entry.program}\b")
      self.assertTrue([name for name in names
                       if re.fullmatch(entry.test, name)], entry)

  def run_on(self, output, *flags):
    with tempfile.TemporaryDirectory() as folder:
      log = pathlib.Path(folder) / "Testing/Temporary/LastTest.log"
      log.parent.mkdir(parents=True)
      log.write_text(LOG.format(program="common_process_test", output=output))
      return subprocess.run(
          [sys.executable, "-B", skipped_tests.__file__, *flags, folder],
          capture_output=True, text=True, check=False)

  def test_only_strictness_fails_and_only_for_what_is_not_listed(self):
    unlisted = GTEST.replace("EndsPidOne", "EndsPidTwo")
    for output, flags, code in ((GTEST, ["--strict"], 0), (unlisted, [], 0),
                                (unlisted, ["--strict"], 1)):
      done = self.run_on(output, *flags)
      self.assertEqual(done.returncode, code, done)
      self.assertIn("common_process_test: EndWithinTest.EndsPid", done.stdout)
    self.assertIn("1 skipped tests that CI must run", done.stderr)
    self.assertEqual(self.run_on("[  PASSED  ] 11 tests.").stdout, "")


if __name__ == "__main__":
  unittest.main()
