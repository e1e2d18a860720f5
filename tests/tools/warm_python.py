"""A Python that imports slow modules once, and runs programs in copies of itself; see scratch.sh.

    warm_python.py serve SOCKET MODULE...      until it is ended; exit code 1 if a module is missing
    warm_python.py run SOCKET PROGRAM ARG...   in this process's folder, with its environment and standard files;
                                               exits as the program does
"""
import importlib
import json
import os
import runpy
import signal
import socket
import struct
import sys


def become(request):
    """Runs the program of a request as `python3 PROGRAM ARG...` would."""
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.argv = request["command"]
    sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
    sys.path[1:1] = filter(None, os.environ.get("PYTHONPATH", "").split(":"))
    runpy.run_path(sys.argv[0], run_name="__main__")


def answer(connection):
    """One request: its program in a child, whose exit code goes back."""
    size, = struct.unpack("!I", connection.recv(4, socket.MSG_WAITALL))
    first, files, _, _ = socket.recv_fds(connection, size, 3)
    request = json.loads(first + connection.recv(size - len(first), socket.MSG_WAITALL))
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    child = os.fork()
    if child:
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        connection.sendall(struct.pack("!i", code))
        os._exit(0)
    connection.close()
    for standard, file in enumerate(files):
        os.dup2(file, standard)
        os.close(file)
    become(request)


def serve(path, modules):
    for name in modules:
        importlib.import_module(name)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path + ".new")
    listener.listen()
    os.rename(path + ".new", path)  # who sees it can connect
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        connection, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            return answer(connection)
        connection.close()


def run(path, command):
    request = {"folder": os.getcwd(), "environment": dict(os.environ), "command": command}
    text = json.dumps(request).encode()
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(path)
    connection.sendall(struct.pack("!I", len(text)))
    sent = socket.send_fds(connection, [text], [0, 1, 2])
    connection.sendall(text[sent:])
    code = connection.recv(4, socket.MSG_WAITALL)
    code = struct.unpack("!i", code)[0] if len(code) == 4 else 1
    sys.exit(code if code >= 0 else 128 - code)


if __name__ == "__main__":
    (serve if sys.argv[1] == "serve" else run)(sys.argv[2], sys.argv[3:])
