"""Servers that the Python benches start: nginx with one process, Node and Go with one loop each."""
import contextlib
import os
import shutil
import subprocess
import tempfile
import time
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
NGINX = """worker_processes 1; daemon off; pid {dir}/pid; error_log {dir}/error.log;
events {{ worker_connections 1024; }}
http {{ access_log off; keepalive_requests 1000000000;
  client_body_temp_path {dir}/b; proxy_temp_path {dir}/p; fastcgi_temp_path {dir}/f; uwsgi_temp_path {dir}/u; scgi_temp_path {dir}/s;
  server {{ listen 127.0.0.1:{port}; location / {{ return 200 "ok\\n"; }} }} }}
"""


def command(name, port, folder):
    if name == "nginx":
        with open(f"{folder}/nginx.conf", "w") as config:
            config.write(NGINX.format(dir=folder, port=port))
        return ["nginx", "-c", f"{folder}/nginx.conf"]
    if name == "node":
        return ["node", f"{HERE}/net/server.js", str(port)]
    built = f"{folder}/server"
    subprocess.run(["go", "build", "-o", built, f"{HERE}/net/server.go"], check=True)
    return [built, str(port)]


def answers(port, server, path="/"):
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and server.poll() is None:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=1).read()
            return True
        except OSError:
            time.sleep(0.05)
    return False


@contextlib.contextmanager
def running(name, port):
    """The server `name`, on CPU 0, until the block ends; None where it does not answer."""
    folder = tempfile.mkdtemp(prefix="tare-bench-")
    server = subprocess.Popen(
        ["taskset", "-c", "0"] + command(name, port, folder),
        env=dict(os.environ, GOMAXPROCS="1"),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield server if answers(port, server) else None
    finally:
        server.terminate()
        server.wait(timeout=10)
        shutil.rmtree(folder, ignore_errors=True)
