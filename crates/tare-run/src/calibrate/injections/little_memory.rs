//! A server in a group with less memory than its files need.

use super::{Ground, Injection, LabError, Need, Scene, refused};

pub(super) static INJECTION: Injection = Injection {
    name: "little-memory",
    about: "a group of 48 MiB around a server that reads 96 MiB of files",
    needs: &[Need::Cpus(2), Need::Controller("memory"), Need::Program("python3")],
    put_up,
};

/// Bytes that the group may have.
const LIMIT_BYTES: u64 = 48 << 20;

/// Reads a piece of a file for each request; the file has no name, and is gone with it; it is not below /tmp,
/// which may be in memory itself.
const READER: &str = r#"
import os, random, select, socket, tempfile
size = 96 << 20
pieces = tempfile.TemporaryFile(dir="/var/tmp")
file = pieces.fileno()
for _ in range(size >> 20):
    os.write(file, os.urandom(1 << 20))
os.fsync(file)
listener = socket.create_server(("127.0.0.1", 0), backlog=256)
print("listening on 127.0.0.1:%d" % listener.getsockname()[1], flush=True)
clients = {}
poll = select.epoll()
poll.register(listener, select.EPOLLIN)
while True:
    for number, _ in poll.poll():
        if number == listener.fileno():
            client, _ = listener.accept()
            clients[client.fileno()] = client
            poll.register(client, select.EPOLLIN)
            continue
        try:
            if clients[number].recv(4096):
                os.pread(file, 1 << 16, random.randrange(size >> 16) << 16)
                clients[number].sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
                continue
        except OSError:
            pass
        clients.pop(number).close()
"#;

fn put_up(ground: &Ground<'_>, scene: &mut Scene) -> Result<(), LabError> {
    let group = ground.group("memory")?;
    group.set_memory(LIMIT_BYTES).map_err(refused)?;
    let server = &mut scene.server;
    server.program = Some(["python3", "-c", READER].map(String::from).to_vec());
    server.traffic.connections = 16;
    server.groups.push(group.procs());
    scene.hold(group);
    Ok(())
}
