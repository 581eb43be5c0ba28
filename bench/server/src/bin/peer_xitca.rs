//! xitca-web with one worker. Usage: `peer-xitca PORT`.

use xitca_web::App;
use xitca_web::handler::handler_service;
use xitca_web::route::get;

fn main() -> std::io::Result<()> {
    let port: u16 = std::env::args().nth(1).and_then(|p| p.parse().ok()).expect("usage: peer-xitca PORT");
    App::new()
        .at("/plaintext", get(handler_service(async || "Hello, World!")))
        .serve()
        .worker_threads(1)
        .bind(("127.0.0.1", port))?
        .run()
        .wait()
}
