//! ntex with one worker. Usage: `peer-ntex PORT`.

use ntex::web::{self, App, HttpResponse};

#[ntex::main]
async fn main() -> std::io::Result<()> {
    let port: u16 = std::env::args().nth(1).and_then(|p| p.parse().ok()).expect("usage: peer-ntex PORT");
    web::HttpServer::new(async || {
        App::new().route(
            "/plaintext",
            web::get().to(async || HttpResponse::Ok().content_type("text/plain").body("Hello, World!")),
        )
    })
    .backlog(4096)
    .workers(1)
    .bind(("127.0.0.1", port))?
    .run()
    .await
}
