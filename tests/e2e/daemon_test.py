"""penstock-coordinator and penstock-stage started by hand, and the verbs that
ask them: addresses, flags, signals, exit codes, output formats."""

import json
import os
import pathlib
import re
import signal
import socket
import stat
import subprocess
import time
import unittest

import daemon_case as dc
import penstock_case as pc


def has_ipv6():
  try:
    with socket.socket(socket.AF_INET6) as probe:
      probe.bind(("::1", 0))
  except OSError:
    return False
  return True


# Runs a command as process 1 of a PID namespace, and ends with its exit code.
AS_PID_1 = ("unshare", "--pid", "--fork", "--kill-child")


def has_pid_namespaces():
  try:
    return subprocess.run([*AS_PID_1, "true"], capture_output=True,
                          check=False).returncode == 0
  except FileNotFoundError:
    return False


def with_file(file, path):
  """A command that runs another that finds `file` at `path`, which exists; None
  where that cannot be."""
  command = ("unshare", "--mount", "sh", "-c",
             f'mount --bind {file} {path} && exec "$@"', "sh")
  try:
    allowed = subprocess.run([*command, "true"], capture_output=True,
                             check=False).returncode == 0
  except FileNotFoundError:
    return None
  return command if allowed else None


class DaemonTest(dc.DaemonCase):

  def test_no_cluster_is_exit_4(self):
    for verb in ("stages", "health"):
      with self.subTest(verb):
        done = self.penstock(verb)
        self.assertEqual(done.code, 4, done)
        self.assertIn("no cluster configured", done.stderr)
        self.assertEqual(done.stdout, "")
    done = self.penstock("health", "--address", "bogus:bogus:1")
    self.assertEqual(done.code, 2, done)

  def test_nobody_there_is_exit_4(self):
    done = self.penstock("health", "--address", f"unix:{self.folder}/none.sock")
    self.assertEqual(done.code, 4, done)
    self.assertIn("none.sock", done.stderr)

  def test_stages_in_every_format(self):
    coordinator, address = self.start_coordinator()
    done = self.penstock("health", "--address", address)
    self.assertEqual((done.code, done.stdout), (0, "SERVING\n"), done)
    self.assertEqual(self.stages(address), [])

    stage = self.start_stage(address, "stage-a", "--device", "reference")
    got = self.await_stage(address, "stage-a", "REGISTERED")
    self.assertEqual(got["pid"], stage.pid)
    self.assertEqual(got["device"]["kind"], "reference")
    self.assertIsInstance(got["device"]["memory_bytes"], int)
    self.assertIn("job_id", got)  # Unset fields are printed.

    ask = ("stages", "--address", address, "-o")
    self.assertEqual(self.penstock(*ask, "name").stdout, "stage-a\n")
    table = self.penstock(*ask, "table").stdout.splitlines()
    self.assertEqual(table[0].split()[:3], ["NAME", "STATE", "DEVICE"])
    self.assertEqual(table[1].split()[:3], ["stage-a", "REGISTERED",
                                            "reference"])
    wide = self.penstock(*ask, "wide").stdout
    self.assertIn(str(stage.pid), wide)
    self.assertIn("name: stage-a", self.penstock(*ask, "yaml").stdout)

    # It is gone when it has ended, not a lease later.
    self.terminate(stage)
    since = time.monotonic()
    self.await_stage(address, "stage-a", "LOST")
    self.assertLess(time.monotonic() - since, 2)
    self.terminate(coordinator)
    self.assertFalse(list(self.folder.glob("*.sock")))

  def test_health_of_what_does_not_serve_is_exit_1(self):
    # A stage is ready while its session stands; this one finds nobody.
    stage = self.start_stage(f"unix:{self.folder}/nobody.sock")
    pc.wait_until(lambda: self.listens("stage-a.sock"), "the stage listens")
    address = f"unix:{self.folder}/stage-a.sock"
    done = self.penstock("health", "--address", address)
    self.assertEqual((done.code, done.stdout), (1, "NOT_SERVING\n"), done)
    done = self.penstock("health", "--address", address, "liveness")
    self.assertEqual((done.code, done.stdout), (0, "SERVING\n"), done)
    done = self.penstock("health", "--address", address, "nonsense")
    self.assertEqual(done.code, 3, done)
    self.terminate(stage)

  def test_coordinator_of_another_protocol(self):
    address = f"unix:{self.folder}/other.sock"
    self.start("penstock_other_protocol", address)
    pc.wait_until(lambda: self.listens("other.sock"), "it listens")
    done = self.penstock("stages", "--address", address)
    self.assertEqual(done.code, 8, done)
    self.assertIn("protocol 7 to 9", done.stderr)
    done = self.finish(self.start_stage(address))
    self.assertEqual(done.code, 2, done)
    self.assertIn("protocol 7 to 9", done.stderr)

  def test_address_by_environment(self):
    coordinator, address = self.start_coordinator()
    self.variables["PENSTOCK_ADDRESS"] = address
    self.assertEqual(self.penstock("health").stdout, "SERVING\n")
    # A flag goes before it.
    self.variables["PENSTOCK_ADDRESS"] = "bogus:bogus:1"
    self.assertEqual(self.penstock("health").code, 2)
    self.assertEqual(self.penstock("health", "--address", address).code, 0)
    self.terminate(coordinator)

  def test_simulate_and_verify_ask_the_configured_coordinator(self):
    size = ("--stages", "2", "--micro-batches", "2")
    order = self.penstock("simulate", "--schedule", "gpipe", *size, "-o", "csv")
    self.assertEqual(order.code, 0, order)  # None is configured: its own.
    (self.work / "order.csv").write_text(order.stdout)
    asks = (("simulate", "--schedule", "gpipe", *size, "-o", "csv"),
            ("verify", "order.csv", *size))
    coordinator, address = self.start_coordinator()
    for ask in asks:
      done = self.penstock(*ask, "--address", address)
      self.assertEqual(done.code, 0, done)
    self.variables["PENSTOCK_ADDRESS"] = address
    self.assertEqual(self.penstock(*asks[0]).stdout, order.stdout)
    self.terminate(coordinator)
    # Nobody is there, and no other one is started in its place.
    for ask in asks:
      done = self.penstock(*ask)
      self.assertEqual(done.code, 4, done)
      self.assertIn("coordinator.sock", done.stderr)

  def test_coordinator_on_a_port(self):
    coordinator, address = self.start_coordinator(listen="127.0.0.1:0")
    self.assertRegex(address, r"^127\.0\.0\.1:[1-9]\d*$")
    second = self.finish(self.start("penstock-coordinator", "--state-dir",
                                    self.folder / "s2", "--listen", address))
    self.assertEqual(second.code, 2, second)
    self.assertRegex(second.stderr, r"^penstock-coordinator: [^\n]*" +
                     re.escape(address) + r"[^\n]* in use\n$")
    other = self.finish(self.start("penstock-coordinator", "--state-dir",
                                   self.folder / "state", "--listen",
                                   "127.0.0.1:0"))
    self.assertEqual(other.code, 2, other)
    self.assertRegex(other.stderr, r"--state-dir \S+/state: another coordinator "
                     rf"\(pid {coordinator.pid}\) uses it")
    # The first is none the worse.
    self.assertEqual(self.penstock("health", "--address", address).code, 0)
    self.terminate(coordinator)

  def test_both_families_on_one_port(self):
    if not has_ipv6():
      self.skipTest("this machine has no IPv6 loopback")
    coordinator, address = self.start_coordinator("--insecure-listen", "[::]:0")
    port = re.fullmatch(r"\[::\]:([1-9]\d*)", address).group(1)
    stage = self.start("penstock-stage", "--coordinator", f"[::1]:{port}",
                       "--name", "stage-a", "--listen", "[::1]:0")
    # Data travel on the interface that leads to the coordinator,
    got = self.await_stage(f"127.0.0.1:{port}", "stage-a", "REGISTERED")
    self.assertRegex(got["data_address"], r"^\[::1\]:[1-9]\d*$")
    # if no flag says another.
    other = self.start_stage(f"[::1]:{port}", "stage-b", "--data-interface",
                             "127.0.0.2")
    there = self.await_stage(f"127.0.0.1:{port}", "stage-b", "REGISTERED")
    self.assertRegex(there["data_address"], r"^127\.0\.0\.2:[1-9]\d*$")
    log = self.terminate(other).stderr
    self.assertIn(f"the coordinator answers at ipv6:[::1]:{port}\n", log)
    for host in ("127.0.0.1", "[::1]", "localhost"):
      if host == "localhost":  # A name for which Debian's c-ares leaks itself.
        self.variables["ASAN_OPTIONS"] = "detect_leaks=0"
      done = self.penstock("health", "--address", f"{host}:{port}")
      self.variables.pop("ASAN_OPTIONS", None)
      self.assertEqual((done.code, done.stdout), (0, "SERVING\n"), done)
    # Ready is what the stage's publisher has seen, a moment later.
    pc.wait_until(
        lambda: self.penstock("health", "--address", got["monitor_address"],
                              "readiness").stdout == "SERVING\n",
        "the stage is ready")
    self.terminate(stage)
    self.terminate(coordinator)

  def test_every_address_of_a_name_is_dialled(self):
    # Whichever is taken first, of one of these coordinators it is another's.
    hosts = self.work / "hosts"
    hosts.write_text("127.0.0.1 localhost two.test\n127.0.0.2 two.test\n")
    with_hosts = with_file(hosts, "/etc/hosts")
    if with_hosts is None:
      self.skipTest("no file system can be mounted here")
    for host in ("127.0.0.1", "127.0.0.2"):
      with self.subTest(host):
        coordinator, address = self.start_coordinator(listen=f"{host}:0")
        port = address.rpartition(":")[2]
        done = self.finish(self.start_command(
            [*with_hosts, self.binaries / "penstock", "health", "--address",
             f"two.test:{port}"]))
        self.assertEqual((done.code, done.stdout), (0, "SERVING\n"), done)
        stage = self.start_command(
            [*with_hosts, self.binaries / "penstock-stage", "--coordinator",
             f"two.test:{port}", "--name", "stage-a", "--listen",
             f"unix:{self.folder}/stage-a.sock"])
        got = self.await_stage(address, "stage-a", "REGISTERED")
        os.kill(got["pid"], signal.SIGTERM)
        done = self.finish(stage)
        self.assertEqual(done.code, 0, done)
        # Which of them it was, and its family, are in the log.
        self.assertRegex(done.stderr, rf"(?m) INFO .*the coordinator answers at "
                         rf"ipv4:{host}:{port}$")
        self.terminate(coordinator)

  def test_sigterm_ends_a_daemon_that_looks_up_a_name(self):
    # A name server that hears questions and answers none. Its port is that of
    # all name servers, its address one of loopback's that nobody else has.
    address = "127." + ".".join(
        str(byte % 254 + 1) for byte in os.urandom(3))
    configuration = self.work / "resolv.conf"
    configuration.write_text(
        f"nameserver {address}\noptions timeout:30 attempts:1\n")
    with_configuration = with_file(configuration, "/etc/resolv.conf")
    if with_configuration is None:
      self.skipTest("no file system can be mounted here")
    stage = ("penstock-stage", "--name", "stage-a", "--coordinator")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as name_server:
      name_server.bind((address, 53))
      name_server.settimeout(60)
      for program, name, *arguments in (
          (stage[0], "a.test", *stage[1:], "a.test:7400",
           "--listen", "127.0.0.1:0"),
          (stage[0], "b.test", *stage[1:], "127.0.0.1:7400",
           "--insecure-listen", "b.test:7401"),
          ("penstock-coordinator", "c.test",
           "--state-dir", self.folder / "state",
           "--insecure-listen", "c.test:7402")):
        with self.subTest(arguments):
          child = self.start_command(
              [*with_configuration, self.binaries / program, *arguments])
          question = b"\1" + name[:1].encode() + b"\4test\0"
          while question not in name_server.recv(512):
            pass  # Of the one before.
          since = time.monotonic()
          os.kill(child.pid, signal.SIGTERM)
          done = self.finish(child)
          self.assertEqual(done.code, 0, done)
          self.assertLess(time.monotonic() - since, 5)

  def test_signals_while_it_starts_leave_no_folder_for_sockets(self):
    # As of a `penstock run` that is killed then: the kernel sends one for each
    # of its threads. Here they are there before the program is.
    def tell_twice():
      numbers = (signal.SIGINT, signal.SIGTERM)
      signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
      for number in numbers:
        os.kill(os.getpid(), number)

    folder = self.runtime / "penstock-told"
    done = self.finish(self.start(
        "penstock-coordinator", "--embedded", "--state-dir", folder, "--listen",
        f"unix:{folder}/coordinator.sock", "--die-with-parent", os.getpid(),
        preexec_fn=tell_twice))
    self.assertEqual(done.code, 0, done)
    self.assertIn("serving on unix:", done.stderr)
    self.assertFalse(folder.exists())

  def test_sockets_are_for_owner_and_group(self):
    coordinator, address = self.start_coordinator()
    stage = self.start_stage(address)
    self.await_stage(address, "stage-a", "REGISTERED")
    for name in ("coordinator.sock", "stage-a.sock"):
      mode = stat.S_IMODE((self.folder / name).stat().st_mode)
      self.assertEqual(oct(mode), "0o660", name)
    self.terminate(stage)
    self.terminate(coordinator)

  def test_log_level(self):
    address = f"unix:{self.folder}/coordinator.sock"
    coordinator = self.start("penstock-coordinator", "--state-dir",
                             self.folder / "state", "--listen", address,
                             "--log-level", "warning")
    pc.wait_until(lambda: self.penstock("health", "--address",
                                        address).code == 0, "it serves")
    self.assertNotIn(" INFO ", self.terminate(coordinator).stderr)

  def test_sigterm_ends_a_daemon_that_is_pid_1(self):
    # Of process 1 the kernel drops signals for which there is no handler.
    if not has_pid_namespaces():
      self.skipTest("no new PID namespace is permitted here")

    def terminate(child, program):
      (pid,) = [pid for pid, command in pc.processes_of(self.folder).items()
                if command.startswith(str(self.binaries / program))]
      os.kill(pid, signal.SIGTERM)
      since = time.monotonic()
      done = self.finish(child)
      self.assertEqual(done.code, 0, done)
      self.assertLess(time.monotonic() - since, 5)

    address = f"unix:{self.folder}/coordinator.sock"
    coordinator = self.start_command(
        [*AS_PID_1, self.binaries / "penstock-coordinator", "--state-dir",
         self.folder / "state", "--listen", address])
    pc.wait_until(lambda: self.penstock("health", "--address",
                                        address).code == 0, "it serves")
    stage = self.start_command(
        [*AS_PID_1, self.binaries / "penstock-stage", "--coordinator", address,
         "--name", "stage-a", "--listen", f"unix:{self.folder}/stage-a.sock"])
    got = self.await_stage(address, "stage-a", "REGISTERED")
    self.assertEqual(got["pid"], 1)
    terminate(stage, "penstock-stage")
    self.await_stage(address, "stage-a", "LOST")  # It was told.
    terminate(coordinator, "penstock-coordinator")

  def test_second_signal_ends_the_coordinator_at_once(self):
    coordinator, address = self.start_coordinator()
    stage = self.start_stage(address)
    self.await_stage(address, "stage-a", "REGISTERED")
    # A server waits for its connections to close; this one will not.
    stage.send_signal(signal.SIGSTOP)
    coordinator.send_signal(signal.SIGTERM)
    pc.wait_until(lambda: not self.listens("coordinator.sock"), "it is ending")
    self.assertIsNone(coordinator.poll())
    since = time.monotonic()
    coordinator.send_signal(signal.SIGTERM)
    self.assertEqual(coordinator.wait(pc.LONG), 143)
    self.assertLess(time.monotonic() - since, 1)

  def test_stop_waits_for_no_schedule_that_is_simulated(self):
    coordinator, address = self.start_coordinator()
    # Each some seconds of a core, one after the other.
    asks = [self.start("penstock", "simulate", "--address", address,
                       "--schedule", "1f1b", "--stages", "512",
                       "--micro-batches", "2048", "-o", "csv")
            for _ in range(5)]
    cpu_time = pathlib.Path(f"/proc/{coordinator.pid}/stat")
    pc.wait_until(lambda: int(cpu_time.read_text().split()[13]) >
                  os.sysconf("SC_CLK_TCK") // 2, "it computes")
    since = time.monotonic()
    self.terminate(coordinator)
    self.assertLess(time.monotonic() - since, 2.5)
    done = [self.finish(ask) for ask in asks]
    refused = [each for each in done if each.code == 4]
    self.assertGreaterEqual(len(refused), 2, done)
    for each in refused:
      self.assertIn("shutting down", each.stderr)

  def test_socket_in_use(self):
    coordinator, address = self.start_coordinator()
    second = self.finish(self.start("penstock-coordinator", "--state-dir",
                                    self.folder / "s2", "--listen", address))
    self.assertEqual(second.code, 2, second)
    self.assertIn("in use", second.stderr)
    stage = self.start_stage(address)
    self.await_stage(address, "stage-a", "REGISTERED")
    other = self.finish(
        self.start_stage(address, "stage-b", socket_name="stage-a"))
    self.assertEqual(other.code, 2, other)
    self.assertIn("in use", other.stderr)
    self.assertEqual(self.penstock("health", "--address", address).code, 0)
    self.terminate(stage)
    self.terminate(coordinator)

  def test_socket_of_a_dead_server_is_taken_over(self):
    coordinator, address = self.start_coordinator()
    coordinator.kill()
    coordinator.wait()
    self.assertTrue(list(self.folder.glob("coordinator.sock")))
    coordinator, address = self.start_coordinator()
    self.assertEqual(self.penstock("health", "--address", address).code, 0)
    self.terminate(coordinator)

  def test_bad_flags_are_exit_2(self):
    for program, arguments, wanted in (
        ("penstock-coordinator", ("--bogus",), "--bogus"),
        ("penstock-coordinator", ("--lease", "soon"), "soon"),
        ("penstock-coordinator", ("--lease", "1s"), "heartbeats"),
        ("penstock-coordinator", ("--lease", "inf"), "at most 1h"),
        ("penstock-coordinator", ("--window", "0"), "--window"),
        ("penstock-coordinator", ("--window", "1001"), "1000"),
        ("penstock-coordinator", ("--insecure-listen", "127.0.0.1:0"),
         "--listen excludes --insecure-listen"),
        ("penstock-coordinator", ("--log-format", "xml"), "xml"),
        ("penstock-coordinator", ("--listen", "0.0.0.0:0"), "--insecure-listen"),
        ("penstock-coordinator", ("--listen", "nonsense"), "nonsense"),
        ("penstock-coordinator", ("--state-dir", "/proc/x"), "/proc/x"),
        ("penstock-coordinator", ("--listen", "unix:/no/such/folder/s"),
         "/no/such/folder/s"),
        ("penstock-stage", ("--device", "cuda:0"), "device 'cuda:0'"),
        ("penstock-stage", ("--cpu-isa", "abacus"), "abacus"),
        ("penstock-stage", ("--name", "No Name"), "No Name"),
        ("penstock-stage", ("--threads", "-1"), "threads"),
        ("penstock-stage", ("--listen", "0.0.0.0:0"), "--insecure-listen"),
        ("penstock-stage", ("--insecure-listen", "127.0.0.1:0"),
         "--listen excludes --insecure-listen"),
        ("penstock-stage", ("--data-interface", "nowhere"), "nowhere"),
        ("penstock-stage", ("--data-interface", "0.0.0.0"), "all interfaces"),
        ("penstock-stage", ("--coordinator", "nonsense"), "nonsense"),
    ):
      with self.subTest(arguments):
        given = list(arguments)
        if "--listen" not in given:
          given += ["--listen", f"unix:{self.folder}/x.sock"]
        if program == "penstock-coordinator" and "--state-dir" not in given:
          given += ["--state-dir", str(self.folder / "state")]
        done = self.finish(self.start(program, *given))
        self.assertEqual(done.code, 2, done)
        self.assertIn(wanted, done.stderr)

  def test_no_way_to_the_coordinator_is_exit_1(self):
    # As when the network is not up yet: to be started again.
    name = "a" * 300  # No name server is asked for it.
    done = self.finish(self.start_stage(f"{name}:7400"))
    self.assertEqual(done.code, 1, done)
    self.assertRegex(done.stderr, r"^penstock-stage: .*aaa:7400 cannot be "
                     r"found: .*--data-interface\n$")

  def test_json_logs(self):
    coordinator, address = self.start_coordinator("--log-format", "json")
    stage = self.start_stage(address, "stage-a", "--log-format", "json")
    self.await_stage(address, "stage-a", "REGISTERED")
    done = [self.terminate(stage), self.terminate(coordinator)]
    for line in "".join(each.stderr for each in done).splitlines():
      self.assertIsInstance(json.loads(line), dict)


if __name__ == "__main__":
  unittest.main()
