"""A Ray cluster of several nodes on this machine, each of which can be killed and another added."""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from jobs.bench import _harm

NODES, CPUS, STORE_BYTES = 2, 2, 100_000_000
SOON = {
    "health_check_initial_delay_ms": 1000,
    "health_check_period_ms": 500,
    "health_check_timeout_ms": 2000,
    "health_check_failure_threshold": 5,
}
"""A dead node is noticed in seconds rather than in a quarter of a minute."""


@dataclass(slots=True)
class Nodes:
    """The cluster as its host process tells of it."""

    host: subprocess.Popen[str]
    address: str
    raylets: list[int] = field(default_factory=list)

    def kill(self, at: int) -> None:
        """SIGKILL of a node: its raylet and all that runs under it."""
        raylet = self.raylets.pop(at)
        of_node = [p for p in _harm.family(self.host.pid) if p.pid == raylet]
        for process in [*of_node, *_harm.family(raylet)]:
            process.kill()

    def add(self) -> None:
        print("add", file=self.host.stdin, flush=True)
        self.raylets.append(int(_line(self.host)))


@contextmanager
def nodes(environment: Mapping[str, str]) -> Iterator[Nodes]:
    """A head without room for actors that ask for a CPU, and NODES that have it."""
    command = [sys.executable, "-m", "jobs.bench._nodes"]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, stdin=pipe, stdout=pipe, text=True, env=environment, start_new_session=True
    ) as host:
        try:
            cluster = Nodes(host, str(json.loads(_line(host))))
            for _ in range(NODES):
                cluster.add()
            yield cluster
        finally:
            host.kill()


def _line(host: subprocess.Popen[str]) -> str:
    if host.stdout is None or not (line := host.stdout.readline()):
        raise RuntimeError("the host of the test cluster ended")
    return line


def main() -> None:
    """Serve: print the address, then a raylet's process id for every line that comes in."""
    from ray.cluster_utils import Cluster

    size = {"num_cpus": 0, "object_store_memory": STORE_BYTES, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args={**size, "_system_config": SOON})
    print(json.dumps(cluster.address), flush=True)
    for _ in sys.stdin:
        node = cluster.add_node(num_cpus=CPUS, object_store_memory=STORE_BYTES)
        print(_raylet(node), flush=True)


def _raylet(node: Any) -> int:
    return int(node.all_processes["raylet"][0].process.pid)


if __name__ == "__main__":
    main()
