//! One loop that does everything.

use tare_sys::net::Sharing;

use crate::architecture::layout::{Architecture, Intake, Layout, Role, listen};
use crate::error::ServerError;
use crate::listening::Listening;

#[derive(Debug)]
pub(crate) struct Reactor;

impl Architecture for Reactor {
    fn name(&self) -> &'static str {
        "reactor"
    }

    fn help(&self) -> &'static str {
        "one loop with the only listener: the least there is, for one CPU"
    }

    fn threads(&self, listening: &Listening) -> Result<Layout, ServerError> {
        if listening.threads != 1 {
            return Err(ServerError::OneLoop { name: self.name(), threads: listening.threads });
        }
        let (listener, address) = listen(listening.address, listening, Sharing::None)?;
        Ok(Layout { address, roles: vec![Role::Loop(Intake::Listener(listener))] })
    }
}
