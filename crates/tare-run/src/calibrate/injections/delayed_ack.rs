//! A server whose small answers wait for the acknowledgement of a part that was sent before.

use super::{Ground, Injection, LabError, Need, Scene};

pub(super) static INJECTION: Injection = Injection {
    name: "delayed-ack",
    about: "head and body written apart, by a server without TCP_NODELAY",
    needs: &[Need::Cpus(2), Need::Program("python3")],
    put_up,
};

/// Each connection has a thread, which writes twice.
const TWO_WRITES: &str = r#"
import socket, threading
listener = socket.create_server(("127.0.0.1", 0), backlog=256)
print("listening on 127.0.0.1:%d" % listener.getsockname()[1], flush=True)
def serve(client):
    try:
        while client.recv(4096):
            client.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n")
            client.send(b"ok")
    except OSError:
        pass
    client.close()
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
"#;

fn put_up(_ground: &Ground<'_>, scene: &mut Scene) -> Result<(), LabError> {
    scene.server.program = Some(["python3", "-c", TWO_WRITES].map(String::from).to_vec());
    scene.server.traffic.connections = 16;
    Ok(())
}
