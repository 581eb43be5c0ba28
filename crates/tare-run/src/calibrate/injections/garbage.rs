//! A program whose runtime collects garbage most of the time.

use super::{Ground, Injection, LabError, Need, Scene};
use crate::calibrate::props::nameless;
use std::time::Duration;

pub(super) static INJECTION: Injection = Injection {
    name: "garbage",
    about: "a JVM with a heap hardly larger than what it keeps",
    needs: &[Need::Cpus(2), Need::Program("java")],
    put_up,
};

/// The JDK's own server: each request takes the place of some of the many small things that are kept, and leaves the old ones.
/// Without `nodelay` its answers would wait for an acknowledgement.
const KEEPER: &str = r#"
import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
class Keeper {
    static Object[] kept = new Object[1 << 19];
    static int next = 0;
    public static void main(String[] none) throws Exception {
        for (int at = 0; at < kept.length; at++) kept[at] = new Object[] { at };
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
        server.createContext("/", exchange -> {
            for (int count = 0; count < 4096; count++) {
                next = (next + 1) % kept.length;
                kept[next] = new Object[] { next };
            }
            exchange.sendResponseHeaders(200, 2);
            exchange.getResponseBody().write("ok".getBytes());
            exchange.close();
        });
        server.start();
        System.out.println("listening on 127.0.0.1:" + server.getAddress().getPort());
    }
}
"#;
const OPTIONS: [&str; 5] =
    ["-Xmx48m", "-XX:+UseParallelGC", "-Dsun.net.httpserver.nodelay=true", "--source", "11"];

fn put_up(_ground: &Ground<'_>, scene: &mut Scene) -> Result<(), LabError> {
    let (path, source) = nameless(KEEPER)?;
    let words = ["java"].into_iter().chain(OPTIONS).map(String::from);
    scene.server.program = Some(words.chain([path.display().to_string()]).collect());
    scene.hold(source);
    // Compiled by then.
    scene.warmup = Duration::from_secs(4);
    Ok(())
}
