"""bench/lab/hosts.py - what happens to hosts of the lab: a link goes, comes back or gets another rate, a host dies. For
scripts that run inside of it, on host0 (bench/lab/run --shell), and for them and ghp-launch who still answers:

    --workers-left 'python3 bench/lab/hosts.py HOSTS FILE'     prints how many, names them in FILE for mpirun --hostfile
"""
import concurrent.futures
import os
import pathlib
import signal
import socket
import subprocess
import sys

LAB = "/dev/shm/ghp-lab"
SWITCH = os.getppid()  # of the script that is started on host0: it stays at the switch


def on(host, command):
    return subprocess.run([f"{LAB}/agent", f"host{host}", command], check=True, capture_output=True, text=True).stdout


def at_switch(command):
    subprocess.run(["nsenter", f"--net=/proc/{SWITCH}/ns/net", "--", *command.split()], check=True)


def link(host, up):
    """As a plug: the host's device is without carrier, its addresses and routes stay."""
    at_switch(f"ip link set port{host} {'up' if up else 'down'}")


def rate(host, bits):
    """Sets the rate of its link, both ways, such as '200mbit'; it must have had one."""
    change = "tc class change dev {} parent 1: classid 1:1 htb rate {} burst 8kb cburst 8kb quantum 60000"
    on(host, change.format("eth0", bits))
    at_switch(change.format(f"port{host}", bits))


def processes(host):
    """Those that run on it."""
    space = on(host, "readlink /proc/self/ns/net").strip()
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if os.readlink(path / "ns/net") == space:
                found.append(int(path.name))
        except OSError:
            pass
    return found


def kill(host):
    """The host is gone: its link, then its processes."""
    link(host, False)
    for pid in processes(host):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def answers(host):
    with socket.socket() as s:
        s.settimeout(1)
        try:
            s.connect((f"10.77.0.{host + 1}", 9))
        except ConnectionRefusedError:  # it says so itself
            return True
        except OSError:
            return False
    return True


def main():
    hosts = range(int(sys.argv[1]))
    with concurrent.futures.ThreadPoolExecutor(len(hosts)) as pool:
        left = [host for host, lives in zip(hosts, pool.map(answers, hosts)) if lives]
    pathlib.Path(sys.argv[2]).write_text("".join(f"host{host} slots=1\n" for host in left))
    print(len(left))


if __name__ == "__main__":
    main()
