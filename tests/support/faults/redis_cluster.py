"""A Redis cluster of three masters, whose slots can be moved and whose nodes can be killed and replaced."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import redis
from redis.crc import key_slot

from tests.support.servers import free_port

NODE_TIMEOUT_MS = 1000  # after which a node counts as dead
MASTERS = 3
STARTS = 3


class Node:
    """A node of a cluster, in its own folder."""

    def __init__(self, folder: Path) -> None:
        """Start it on free ports, on others if another process takes one of them first."""
        self.folder = folder
        folder.mkdir()
        for _ in range(STARTS):
            self.port, self.bus_port = free_port(), free_port()
            if self._starts():
                return
        raise AssertionError("a node did not start")

    def start(self) -> None:
        """Start it again, on the same ports."""
        assert self._starts(), "a node did not start again"

    def _starts(self) -> bool:
        command = ["redis-server", "--port", str(self.port), "--cluster-enabled", "yes", "--save", ""]
        command += ["--cluster-port", str(self.bus_port), "--cluster-node-timeout", str(NODE_TIMEOUT_MS)]
        command += ["--repl-diskless-sync-delay", "0", "--cluster-allow-replica-migration", "no"]
        self.process = subprocess.Popen(command, cwd=self.folder, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        if any("eady to accept connections" in line for line in self.process.stdout):
            return True
        self.kill()
        return False

    def kill(self) -> None:
        with self.process:
            self.process.kill()

    def execute(self, *command: object) -> Any:
        with redis.Redis(port=self.port) as client:
            return client.execute_command(*command)

    def stop_replicating(self) -> None:
        """Let a replica keep what it has: its master refuses the login that it needs from now on."""
        self.execute("CONFIG", "SET", "masterauth", "refused")
        self.execute("CONFIG", "SET", "cluster-replica-validity-factor", 0)  # it may take over however old its data are
        self.execute("CLIENT", "KILL", "TYPE", "master")

    @property
    def id(self) -> str:
        return str(self.execute("CLUSTER", "MYID").decode())


class Cluster:
    """Three masters that share the slots, each with a replica if `replicas`."""

    def __init__(self, folder: Path, *, replicas: bool) -> None:
        self.nodes = [Node(folder / f"node-{n}") for n in range(MASTERS * (1 + replicas))]
        addresses = [f"127.0.0.1:{node.port}" for node in self.nodes]
        self.cli("create", *addresses, "--cluster-replicas", str(int(replicas)), "--cluster-yes")
        for node in self.nodes:
            while "cluster_state:ok" not in node.execute("CLUSTER", "INFO").decode():
                pass
        for node in self.nodes[MASTERS:]:
            while "master_link_status:up" not in _text(node.execute("INFO", "replication")):
                pass

    @property
    def url(self) -> str:
        """The URL of the first node, which stays alive."""
        return f"redis://127.0.0.1:{self.nodes[0].port}"

    def cli(self, *command: str) -> None:
        subprocess.run(["redis-cli", "--cluster", *command], check=True, capture_output=True, text=True)

    def owner_of(self, key: str) -> Node:
        """The node that has the slot of a key."""
        slot = key_slot(key.encode())
        for first, last, (_, port, *_), *_ in self.nodes[0].execute("CLUSTER", "SLOTS"):
            if first <= slot <= last:
                return next(node for node in self.nodes if node.port == port)
        raise AssertionError(f"no node has slot {slot}")

    def begin_move(self, key: str) -> Iterator[None]:
        """Move the slot of a key to another master: half of its keys at the first step, all at the second."""
        slot, source = key_slot(key.encode()), self.owner_of(key)
        target = next(node for node in self.nodes[:MASTERS] if node is not source)
        target.execute("CLUSTER", "SETSLOT", slot, "IMPORTING", source.id)
        source.execute("CLUSTER", "SETSLOT", slot, "MIGRATING", target.id)
        self._migrate(source, target, slot, int(source.execute("CLUSTER", "COUNTKEYSINSLOT", slot)) // 2)
        yield
        while held := int(source.execute("CLUSTER", "COUNTKEYSINSLOT", slot)):
            self._migrate(source, target, slot, held)
        for node in (target, source, *self.nodes[:MASTERS]):
            node.execute("CLUSTER", "SETSLOT", slot, "NODE", target.id)

    def _migrate(self, source: Node, target: Node, slot: int, count: int) -> None:
        keys = source.execute("CLUSTER", "GETKEYSINSLOT", slot, count)
        source.execute("MIGRATE", "127.0.0.1", target.port, "", 0, 10_000, "KEYS", *keys)

    def replica_of(self, master: Node) -> Node:
        """The replica of a master."""
        return next(node for node in self.nodes[MASTERS:] if node.execute("ROLE")[2] == master.port)

    def replace(self, dead: Node) -> None:
        """Give the slots of a dead master without a replica to a new node; their data are lost."""
        alive = [node for node in self.nodes if node is not dead]
        for node in alive:
            while b"cluster_state:fail" not in node.execute("CLUSTER", "INFO"):
                pass  # it does not know yet
        first, last, (*_, dead_id, _) = next(
            slots for slots in alive[0].execute("CLUSTER", "SLOTS") if slots[2][1] == dead.port
        )
        new = Node(dead.folder.with_name("new"))
        self.nodes = [*alive, new]
        for node in alive:
            node.execute("CLUSTER", "FORGET", dead_id)
        alive[0].execute("CLUSTER", "MEET", "127.0.0.1", new.port, new.bus_port)
        new.execute("CLUSTER", "ADDSLOTSRANGE", first, last)
        for node in self.nodes:
            while b"cluster_state:ok" not in node.execute("CLUSTER", "INFO"):
                pass

    def close(self) -> None:
        for node in self.nodes:
            node.kill()


def _text(reply: Any) -> str:
    return "\n".join(f"{name}:{value}" for name, value in reply.items()) if isinstance(reply, dict) else reply.decode()


@contextmanager
def three_masters(folder: Path, *, replicas: bool = False) -> Iterator[Cluster]:
    cluster = Cluster(folder, replicas=replicas)
    try:
        yield cluster
    finally:
        cluster.close()
