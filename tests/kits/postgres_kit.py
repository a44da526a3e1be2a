"""A PostgreSQL server of Debian's package, started on loopback in a temporary folder by whoever needs it."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from processes import wait_until


def programs() -> Path | None:
    """The folder of initdb and postgres; None where PostgreSQL is not installed."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    path = found[-1] if found else shutil.which("initdb")
    return Path(path).parent if path else None


@contextmanager
def postgres(folder: Path) -> Iterator[str]:
    """A server; gives the URL of its database."""
    import psycopg

    # It refuses to be root, and then needs a folder that its own user can reach.
    as_other = {"user": "postgres", "group": "postgres", "extra_groups": []} if os.geteuid() == 0 else {}
    place = Path(tempfile.mkdtemp(prefix="assay-postgres-"))
    if as_other:
        owner = pwd.getpwnam("postgres")
        os.chown(place, owner.pw_uid, owner.pw_gid)
    data, port = place / "data", _free_port()
    made = [folder / "initdb", "-D", data, "-U", "assay", "--auth=trust", "--no-sync", "-E", "UTF8", "--locale=C"]
    subprocess.run(made, check=True, stdout=subprocess.DEVNULL, cwd=place, **as_other)
    settings = {"listen_addresses": "127.0.0.1", "port": port, "unix_socket_directories": place, "fsync": "off"}
    options = [word for key, value in settings.items() for word in ("-c", f"{key}={value}")]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    server = subprocess.Popen([folder / "postgres", "-D", data, *options], cwd=place, **quiet, **as_other)
    url = f"postgresql://assay@127.0.0.1:{port}/postgres"

    def answers() -> bool:
        assert server.poll() is None, "the server ended"
        try:
            psycopg.connect(url).close()
        except psycopg.OperationalError:
            return False
        return True

    try:
        assert wait_until(answers)
        yield url
    finally:
        server.send_signal(signal.SIGINT)
        server.wait()
        shutil.rmtree(place)


def _free_port() -> int:
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
