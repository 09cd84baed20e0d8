"""penstock-coordinator and penstock-stage started by hand, for the tests of
daemons."""

import json
import re
import signal
import socket

import penstock_case as pc


class DaemonCase(pc.PenstockCase):

  def start_coordinator(self, *arguments, listen=None, term=None):
    """A serving coordinator, of this `term`, and its address."""
    if "--insecure-listen" not in arguments:
      arguments += ("--listen",
                    listen or f"unix:{self.folder}/coordinator.sock")
    child = self.start("penstock-coordinator", "--state-dir",
                       self.folder / "state", *arguments)
    line = child.stderr.readline()
    found = re.search(r"serving on ([^\s\",]+)", line)
    self.assertIsNotNone(found, line)
    if term is not None:
      self.assertTrue(line.endswith(f", term {term}\n"), line)
    return child, found.group(1)

  def start_stage(self, address, name="stage-a", *arguments, socket_name=None):
    return self.start(
        "penstock-stage", "--coordinator", address, "--name", name, "--listen",
        f"unix:{self.folder}/{socket_name or name}.sock", *arguments)

  def stages(self, address):
    done = self.penstock("stages", "--address", address, "-o", "json")
    self.assertEqual(done.code, 0, done)
    return json.loads(done.stdout)

  def await_stage(self, address, name, state):
    return pc.wait_until(
        lambda: next((s for s in self.stages(address)
                      if s["name"] == name and s["state"] == state), None),
        f"{name} is {state}")

  def terminate(self, child, code=0):
    child.send_signal(signal.SIGTERM)
    done = self.finish(child)
    self.assertEqual(done.code, code, done)
    return done

  def listens(self, name):
    with socket.socket(socket.AF_UNIX) as connection:
      return connection.connect_ex(str(self.folder / name)) == 0
