//! One loop that does everything.

use tare_sys::net::Sharing;

use crate::architecture::{Architecture, Intake, Layout, Role, listen};
use crate::config::{Config, ServerError};

#[derive(Debug)]
pub(crate) struct Reactor;

impl Architecture for Reactor {
    fn name(&self) -> &'static str {
        "reactor"
    }

    fn help(&self) -> &'static str {
        "one loop with the only listener: the least there is, for one CPU"
    }

    fn threads(&self, config: &Config) -> Result<Layout, ServerError> {
        if config.threads != 1 {
            return Err(ServerError::OneLoop { name: self.name(), threads: config.threads });
        }
        let (listener, address) = listen(config.listen, config, Sharing::None)?;
        Ok(Layout { address, roles: vec![Role::Loop(Intake::Listener(listener))] })
    }
}
