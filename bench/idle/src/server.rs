//! A server of one busy loop, beside threads that sleep.

use anyhow::{Context, Result};
use std::net::SocketAddr;
use std::time::Duration;
use tare_server::{Config, Server};

/// Each needs no more.
const STACK_BYTES: usize = 16 << 10;
/// One that wakes does so after this.
const LONG: Duration = Duration::from_secs(100_000);

/// Serves until it is killed.
pub fn serve(address: SocketAddr, sleepers: u32) -> Result<()> {
    for number in 0..sleepers {
        std::thread::Builder::new()
            .name(format!("pool-{number}"))
            .stack_size(STACK_BYTES)
            .spawn(|| {
                loop {
                    std::thread::sleep(LONG);
                }
            })
            .with_context(|| format!("sleeper {number}"))?;
    }
    let server = Server::builder().builtin_routes().bind(Config::new(address))?;
    println!("listening on {}", server.local_addr());
    server.run()?;
    Ok(())
}
