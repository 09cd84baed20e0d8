"""The checks find what is planted, and nothing in innocent look-alikes."""
import pathlib
import tempfile
import unittest

import docs_check
import include_check
import source_check
import target_check


class ChecksTest(unittest.TestCase):

  def found_in(self, find, tree):
    """What `find` says of the tree {path: text}."""
    with tempfile.TemporaryDirectory() as folder:
      for path, text in tree.items():
        file = pathlib.Path(folder) / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
      return list(find(folder))

  def check(self, check, path, text):
    """What `check` says of a tree with this one file."""
    return self.found_in(check.violations, {path: text})

  def assertFound(self, check, path, text, *words, line=1):
    found = self.check(check, path, text)
    self.assertEqual(len(found), 1, (path, text, found))
    for word in (f"{path}:{line}: ", *words):
      self.assertIn(word, found[0])

  def assertClean(self, check, path, text):
    self.assertEqual(self.check(check, path, text), [], (path, text))

  def test_clocks_are_found(self):
    for text in ("auto t = absl::Now();",
                 "auto t = std::chrono::system_clock::now();",
                 "t = steady_clock::now();",
                 "std::chrono::high_resolution_clock::now();",
                 "clock_gettime(CLOCK_MONOTONIC, &t);",
                 "gettimeofday(&t, nullptr);", "x = time(nullptr);",
                 "x = std::time(&t);", "uv_now(loop)"):
      self.assertFound(source_check, "server/executor/a.cc",
                       "\n" + text + "\n", "reads a clock", text, line=2)

  def test_the_listed_files_may(self):
    self.assertClean(source_check, "common/time/real_clock.cc",
                     "return absl::Now();")
    self.assertClean(source_check, "client/main.cc", "std::getenv(name);")

  def test_a_list_that_is_too_long_is_found(self):
    found = self.check(source_check, "common/rpc/deadline.cc", "int x;\n")
    self.assertEqual(found, ["common/rpc/deadline.cc: reads a clock no more: "
                             "take it off the list"])

  def test_sleeps_environment_flags_walks_and_forks_are_found(self):
    for text, what in (
        ("absl::SleepFor(limit);", "sleeps"),
        ("std::this_thread::sleep_for(1s);", "sleeps"),
        ("usleep(10);", "sleeps"), ("sleep(1);", "sleeps"),
        ("const char* v = std::getenv(name);", "environment"),
        ("const char* v = secure_getenv(name);", "environment"),
        ("extern char** environ;", "environment"),
        ("absl::GetFlag(FLAGS_x);", "flags"),
        ("ABSL_FLAG(int, x, 0, y);", "flags"),
        ("for (auto& e : fs::directory_iterator(p, error)) {",
         "walks a folder"),
        ("pid_t p = fork();", "forks"), ("::fork();", "forks"),
        ("daemon(0, 0);", "forks"), ("vfork ();", "forks")):
      self.assertFound(source_check, "server/service/a.cc", text, what)
      self.assertFound(source_check, "coordinator/main.h", text, what)

  def test_comments_literals_and_names_are_innocent(self):
    self.assertClean(source_check, "server/service/a.cc", r'''
// absl::Now() is not called: fork()
/* getenv(
   sleep(1) */
const char* text = "call fork() or \" absl::Now()";
const char* raw = R"(getenv("X"))" R"x(fork(")")x";
const int big = 1'000'000; char quote = '"'; const char* t = "absl::Now()";
uptime(0); clock.time(0); pitch_fork(); metrics.time().seconds();
StageDaemon daemon_of(x); reply->clone(); runtime (nullptr);
Metrics environment; std::chrono::system_clock::time_point deadline;
''')

  def test_tests_may_do_what_they_like(self):
    self.assertClean(source_check, "tests/a.cc", "absl::Now(); fork();")

  def test_rooms_of_plain_values_include_no_machinery(self):
    for room in ("schedule", "planner", "dispatch"):
      for header in ("fstream", "thread", "mutex", "chrono", "iostream",
                     "condition_variable", "filesystem", "unistd.h"):
        found = self.check(include_check, f"coordinator/{room}/a.cc",
                           f"#include <{header}>\n")
        self.assertEqual(len(found), 1, (room, header, found))
        self.assertIn("a function of plain values", found[0])
      self.assertClean(include_check, f"coordinator/{room}/a.cc",
                       "#include <vector>\n#include \"common/log/log.h\"\n")
    for text in ('"absl/time/clock.h"', '"absl/synchronization/mutex.h"'):
      self.assertFound(include_check, "coordinator/dispatch/a.h",
                       f"#include {text}\n", "a function of plain values")
    self.assertFound(include_check, "coordinator/dispatch/a.h",
                     '#include "common/sync/mutex.h"\n', "may include only")
    self.assertClean(include_check, "coordinator/service/a.cc",
                     "#include <thread>\n")

  def test_arrows(self):
    for path, header, words in (
        ("server/model/a.cc", "coordinator/spec/b.h", "may include only"),
        ("client/a.cc", "server/b.h", "may include only"),
        ("server/model/a.cc", "server/transport/b.h", "may include only"),
        ("common/log/a.h", "common/rpc/b.h", "may include only"),
        ("server/executor/a.h", "server/data/b.h", "may include only"),
        ("server/executor/a.h", "common/rpc/rpc_server.h", "may include only"),
        ("coordinator/main.cc", "coordinator/planner/b.h", "may include only"),
        ("server/data/a.cc", "penstock/v1/b.pb.h", "may include only"),
        ("server/model/a.cc", "tests/fakes/b.h", "never includes tests"),
        ("client/local_cluster.cc", "common/time/real_clock.h",
         "allowed only in"),
        ("server/model/a.cc", "grpcpp/server.h", "allowed only in"),
        ("server/executor/a.cc", "uv.h", "allowed only in")):
      self.assertFound(include_check, path, f'#include "{header}"\n', words)
    self.assertClean(include_check, "client/main.cc",
                     '#include "common/time/real_clock.h"\n')

  def test_an_arrow_that_is_not_there_is_found(self):
    tree = {"common/file/a.cc": '#include "common/status/b.h"\n',
            "common/ids/a.cc": '#include "common/log/b.h"\n'}
    row = "include_check.py: common/ids includes nothing of "
    found = self.found_in(include_check.unused_arrows, tree)
    self.assertIn(row + "common/text/", found)
    self.assertNotIn(row + "common/log/", found)
    self.assertFalse([each for each in found if ": common/file " in each])

  def test_targets_declare_what_they_include(self):
    good = {
        "common/CMakeLists.txt": """
penstock_library(penstock_a HDRS a.h)  # penstock_library(no HDRS b.h)
penstock_library(penstock_b
  HDRS b.h
  SRCS b.cc ${generated}
  DEPS penstock_a penstock_proto_services absl::status)
penstock_binary(penstock-b SRCS main.cc
  DEPS penstock_b)
""",
        "common/a.h": "#include <string>\n",
        "common/b.h": '#include "penstock/v1/x.pb.h"\n',
        "common/b.cc": '#include "common/a.h"\n#include "common/b.h"\n',
        "common/main.cc": '#include "common/b.h"\n',
    }

    def found(**changed):
      return self.found_in(target_check.violations, good | {
          "common/" + name.replace("_", "."): text
          for name, text in changed.items()})

    self.assertEqual(found(), [])
    self.assertEqual(
        found(main_cc='#include "common/b.h"\n #include "common/a.h"\n'),
        ["common/main.cc: includes common/a.h, but penstock-b does not "
         "declare penstock_a"])
    self.assertEqual(
        found(a_h='#include "penstock/v1/x.grpc.pb.h"\n'),
        ["common/a.h: includes penstock/v1/x.grpc.pb.h, but penstock_a does "
         "not declare penstock_proto_services"])
    self.assertEqual(
        found(b_cc='#include "common/b.h"\n'),
        ["penstock_b: declares penstock_a, of which it includes nothing"])
    self.assertEqual(found(c_h=""),
                     ["common/c.h: in one target, not in none"])
    twice = good["common/CMakeLists.txt"].replace("HDRS a.h", "HDRS a.h b.h")
    self.assertIn(
        "common/b.h: in one target, not in ['penstock_a', 'penstock_b']",
        self.found_in(target_check.violations,
                      good | {"common/CMakeLists.txt": twice}))

  def test_what_the_documentation_names(self):
    tree = {
        "README.md": "# A page\n## With, a heading\n",
        "dev": "case x in\n  build | test)\n",
        "CMakePresets.json": '{"version": 6, "buildPresets": [{"name": "dev"}]}',
        "server/executor/core.h": "",
        "server/executor/core.cc": 'Flag("--good-flag");',
        "tests/core_test.cc": "TEST_F(CoreTest, Works) {}",
        "tests/CMakeLists.txt": "penstock_test(core_test SRCS core_test.cc)",
    }
    good = """
See `executor/core.h`, `core.{h,cc}`, `server/executor/`, [here](../README.md)
and [there](../README.md#with-a-heading): `--good-flag`, `CoreTest.Works`.
`core_test.cc` (`CoreTest`), `tests/core_test.cc` (in words).
`build/bin`, `/tmp/x.h`, `KEY/VALUE`, `a/b`: nobody's business.
```
./dev test && ctest --preset dev -R core   # --no-flag of core/none.h
cmake --build --preset dev --target core_test --good-flag
```
**Not built yet.** `--no-flag`
and `server/none.h`.
"""
    tree["tests/words.py"] = "--preset --build --target"

    def found(page):
      return self.found_in(docs_check.violations, tree | {"docs/page.md": page})

    self.assertEqual(found(good), [])
    for line, word in (
        ("`executor/none.h`", "path: executor/none.h"),
        ("`core.{h,py}`", "path: core.{h,py}"),
        ("`server/none`", "path: server/none"),
        ("[a](none.md)", "file: none.md"),
        ("[a](../README.md#none)", "heading: ../README.md#none"),
        ("`--no-flag`", "flag: --no-flag"),
        ("`CoreTest.Fails`", "test: CoreTest.Fails"),
        ("`tests/core_test.cc` (`OtherTest`)",
         "suite: OtherTest in tests/core_test.cc"),
        ("`cmake --preset none`", "preset: none"),
        ("`ctest --preset dev -R none`", "target: none"),
        ("`./dev none`", "command: ./dev none"),
        ("```\n./dev none\n```", "command: ./dev none")):
      says = found("\n" + line + "\n")
      self.assertEqual(len(says), 1, (line, says))
      self.assertTrue(says[0].startswith("docs/page.md:"), says)
      self.assertIn("no such " + word, says[0])


if __name__ == "__main__":
  unittest.main()
