"""A redis-server and its faults: each can be injected and repaired."""

import signal
import subprocess
from pathlib import Path
from typing import Any

import redis

from tests.support.servers import free_port

FILLER = 2_000  # keys, for a start to take its time over
LOAD_DELAY_US = 2_000  # a key


class Box:
    """A redis-server that can be stopped and started, in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.url = f"unix://{folder}/redis.sock"
        folder.mkdir()
        self.start()

    def start(self, *options: str, until: str = "eady to accept connections") -> None:
        """Start it, and wait until it says so."""
        command = ["redis-server", "--port", "0", "--unixsocket", str(self._folder / "redis.sock"), "--save", ""]
        command += ["--enable-debug-command", "local", *options]
        self._process = subprocess.Popen(command, cwd=self._folder, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        assert any(until in line for line in self._process.stdout), "redis-server did not start"

    def stop(self) -> None:
        """As a crash would."""
        with self._process:
            self._process.kill()

    def signal(self, number: int) -> None:
        self._process.send_signal(number)

    def do(self, *command: object) -> Any:
        with redis.Redis.from_url(self.url, socket_timeout=None) as client:  # SAVE takes as long as there is data
            return client.execute_command(*command)

    def forget(self) -> None:
        """Leave nothing to start from."""
        (self._folder / "dump.rdb").unlink(missing_ok=True)


class Fault:
    """What is done to a Redis and undone; `told` is its name, `said` what a run tells that waits for it."""

    told: str
    said = "does not answer"

    def prepare(self, box: Box) -> None:
        """Before the run."""

    def strike(self, box: Box) -> None:
        raise NotImplementedError

    def mend(self, box: Box) -> None:
        raise NotImplementedError


class RestartedWithItsData(Fault):
    told = "stopped, started with its data"

    def strike(self, box: Box) -> None:
        box.do("SAVE")
        box.stop()

    def mend(self, box: Box) -> None:
        box.start()


class RestartedEmpty(Fault):
    told = "stopped, started without its data"

    def strike(self, box: Box) -> None:
        box.stop()
        box.forget()

    def mend(self, box: Box) -> None:
        box.start()


class RestartedFromAnOlderSnapshot(RestartedEmpty):
    told = "stopped, started from an older snapshot"

    def prepare(self, box: Box) -> None:
        box.do("SAVE")

    def strike(self, box: Box) -> None:
        box.stop()


class Full(Fault):
    told = "out of memory"
    said = "used memory > 'maxmemory'"

    def strike(self, box: Box) -> None:
        box.do("CONFIG", "SET", "maxmemory", 1)

    def mend(self, box: Box) -> None:
        box.do("CONFIG", "SET", "maxmemory", 0)


class Loading(Fault):
    told = "loading"
    said = "loading the dataset"

    def strike(self, box: Box) -> None:
        box.do("DEBUG", "POPULATE", FILLER, "filler")
        box.do("SAVE")
        box.stop()
        slowly = ("--key-load-delay", str(LOAD_DELAY_US), "--loading-process-events-interval-bytes", "1024")
        box.start(*slowly, until="Server initialized")

    def mend(self, box: Box) -> None:
        box.do("CONFIG", "SET", "key-load-delay", 0)


class ReadOnly(Fault):
    told = "read-only after a failover"
    said = "read only replica"

    def strike(self, box: Box) -> None:
        box.do("REPLICAOF", "127.0.0.1", free_port())

    def mend(self, box: Box) -> None:
        box.do("REPLICAOF", "NO", "ONE")


class Slow(Fault):
    told = "stands still"
    said = "no answer for 5 seconds"

    def strike(self, box: Box) -> None:
        box.signal(signal.SIGSTOP)

    def mend(self, box: Box) -> None:
        box.signal(signal.SIGCONT)


class OtherPassword(Fault):
    told = "password changed"
    said = "refuses the login"

    def strike(self, box: Box) -> None:
        box.do("CONFIG", "SET", "requirepass", "another")
        with redis.Redis.from_url(box.url, password="another") as client:
            client.execute_command("CLIENT", "KILL", "TYPE", "normal")

    def mend(self, box: Box) -> None:
        with redis.Redis.from_url(box.url, password="another") as client:
            client.config_set("requirepass", "")


FAULTS = (
    RestartedWithItsData,
    RestartedEmpty,
    RestartedFromAnOlderSnapshot,
    Full,
    Loading,
    ReadOnly,
    Slow,
    OtherPassword,
)
