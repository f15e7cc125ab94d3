"""A redis-server, and faults that can be injected into it and repaired."""

import signal
import subprocess
from pathlib import Path
from typing import Any

import redis

from tests.support.servers import free_port

FILLER = 2_000  # keys, so that loading takes some time
LOAD_DELAY_US = 2_000  # per key


class RedisServer:
    """A redis-server in its own folder that can be stopped and started."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.url = f"unix://{folder}/redis.sock"
        folder.mkdir()
        self.start()

    def start(self, *options: str, until: str = "eady to accept connections") -> None:
        """Start it, and wait for the log line that contains `until`."""
        command = ["redis-server", "--port", "0", "--unixsocket", str(self._folder / "redis.sock"), "--save", ""]
        command += ["--enable-debug-command", "local", *options]
        self._process = subprocess.Popen(command, cwd=self._folder, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        assert any(until in line for line in self._process.stdout), "redis-server did not start"

    def start_lagging_replica(self) -> None:
        """Start a replica with the data that there are now, which gets no more."""
        port, path = free_port(), self._folder / "replica.sock"
        self.execute("CONFIG", "SET", "port", port)
        self.execute("CONFIG", "SET", "repl-diskless-sync-delay", 0)  # it is 5 seconds, for further replicas
        command = ["redis-server", "--port", "0", "--unixsocket", str(path), "--save", ""]
        command += ["--enable-debug-command", "local", "--replicaof", "127.0.0.1", str(port)]
        self._replica = subprocess.Popen(command, cwd=self._folder, stdout=subprocess.PIPE, text=True)
        assert self._replica.stdout is not None
        synchronized = ("Finished with success", "accepted a Partial Resynchronization")
        assert any(words in line for line in self._replica.stdout for words in synchronized), "the replica has no data"
        with redis.Redis.from_url(f"unix://{path}") as client:
            client.execute_command("REPLICAOF", "127.0.0.1", free_port())

    def fail_over(self) -> None:
        """Kill it, and let its replica answer in its place."""
        self.stop()
        self._process = self._replica
        (self._folder / "replica.sock").rename(self._folder / "redis.sock")

    def stop(self) -> None:
        """Kill it, as a crash does."""
        with self._process:
            self._process.kill()

    def signal(self, number: int) -> None:
        self._process.send_signal(number)

    def execute(self, *command: object) -> Any:
        with redis.Redis.from_url(self.url, socket_timeout=None) as client:  # SAVE may take long
            return client.execute_command(*command)

    def delete_snapshot(self) -> None:
        """Delete the snapshot, so that it starts empty."""
        (self._folder / "dump.rdb").unlink(missing_ok=True)


class Fault:
    """A fault of Redis.

    `label` names it in the fault table; `wait_reason` is part of the reason that a waiting run gives.
    """

    label: str
    wait_reason = "does not answer"

    def prepare(self, server: RedisServer) -> None:
        """Prepare the server before the run."""

    def inject(self, server: RedisServer) -> None:
        raise NotImplementedError

    def repair(self, server: RedisServer) -> None:
        raise NotImplementedError


class RestartedWithItsData(Fault):
    label = "stopped, started with its data"

    def inject(self, server: RedisServer) -> None:
        server.execute("SAVE")
        server.stop()

    def repair(self, server: RedisServer) -> None:
        server.start()


class RestartedEmpty(Fault):
    label = "stopped, started without its data"

    def inject(self, server: RedisServer) -> None:
        server.stop()
        server.delete_snapshot()

    def repair(self, server: RedisServer) -> None:
        server.start()


class RestartedFromAnOlderSnapshot(RestartedEmpty):
    label = "stopped, started from an older snapshot"

    def prepare(self, server: RedisServer) -> None:
        server.execute("SAVE")

    def inject(self, server: RedisServer) -> None:
        server.stop()


class Full(Fault):
    label = "out of memory"
    wait_reason = "used memory > 'maxmemory'"

    def inject(self, server: RedisServer) -> None:
        server.execute("CONFIG", "SET", "maxmemory", 1)

    def repair(self, server: RedisServer) -> None:
        server.execute("CONFIG", "SET", "maxmemory", 0)


class Loading(Fault):
    label = "loading"
    wait_reason = "loading the dataset"

    def inject(self, server: RedisServer) -> None:
        server.execute("DEBUG", "POPULATE", FILLER, "filler")
        server.execute("SAVE")
        server.stop()
        slow_loading = ("--key-load-delay", str(LOAD_DELAY_US), "--loading-process-events-interval-bytes", "1024")
        server.start(*slow_loading, until="Server initialized")

    def repair(self, server: RedisServer) -> None:
        server.execute("CONFIG", "SET", "key-load-delay", 0)


class ReadOnly(Fault):
    label = "read-only after a failover"
    wait_reason = "read only replica"

    def inject(self, server: RedisServer) -> None:
        server.execute("REPLICAOF", "127.0.0.1", free_port())

    def repair(self, server: RedisServer) -> None:
        server.execute("REPLICAOF", "NO", "ONE")


class LaggingReplica(Fault):
    label = "failed over to a replica that lags"
    wait_reason = "read only replica"

    def prepare(self, server: RedisServer) -> None:
        server.start_lagging_replica()

    def inject(self, server: RedisServer) -> None:
        server.fail_over()

    def repair(self, server: RedisServer) -> None:
        server.execute("REPLICAOF", "NO", "ONE")


class Hanging(Fault):
    label = "hangs"
    wait_reason = "no answer for 5 seconds"

    def inject(self, server: RedisServer) -> None:
        server.signal(signal.SIGSTOP)

    def repair(self, server: RedisServer) -> None:
        server.signal(signal.SIGCONT)


class OtherPassword(Fault):
    label = "password changed"
    wait_reason = "refuses the login"

    def inject(self, server: RedisServer) -> None:
        server.execute("CONFIG", "SET", "requirepass", "another")
        with redis.Redis.from_url(server.url, password="another") as client:
            client.execute_command("CLIENT", "KILL", "TYPE", "normal")

    def repair(self, server: RedisServer) -> None:
        with redis.Redis.from_url(server.url, password="another") as client:
            client.config_set("requirepass", "")


FAULTS = (
    RestartedWithItsData,
    RestartedEmpty,
    RestartedFromAnOlderSnapshot,
    Full,
    Loading,
    ReadOnly,
    LaggingReplica,
    Hanging,
    OtherPassword,
)
