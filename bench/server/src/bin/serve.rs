//! `tare-server` with its built-in routes on one thread. Usage: `serve PORT [ROOT]`.

use tare_server::{Config, Server};

fn main() {
    let port: u16 = std::env::args().nth(1).and_then(|p| p.parse().ok()).expect("usage: serve PORT");
    let config = Config::new(([127, 0, 0, 1], port).into());
    let server = Server::builder().builtin_routes().bind(config).expect("an address that is free");
    server.run().expect("a server that runs");
}
