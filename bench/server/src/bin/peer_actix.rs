//! actix-web with one worker. Usage: `peer-actix PORT`.

use std::time::Duration;

use actix_web::http::KeepAlive;
use actix_web::{App, HttpResponse, HttpServer, web};

#[actix_web::main]
async fn main() -> std::io::Result<()> {
    let port: u16 = std::env::args().nth(1).and_then(|p| p.parse().ok()).expect("usage: peer-actix PORT");
    let app = || {
        App::new().route(
            "/plaintext",
            web::get().to(|| async { HttpResponse::Ok().content_type("text/plain").body("Hello, World!") }),
        )
    };
    HttpServer::new(app)
        .keep_alive(KeepAlive::Os)
        .client_request_timeout(Duration::ZERO)
        .backlog(4096)
        .workers(1)
        .bind(("127.0.0.1", port))?
        .run()
        .await
}
