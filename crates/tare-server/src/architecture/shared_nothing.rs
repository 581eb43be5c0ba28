//! Every loop has its own listener; the kernel deals connections by the hash of their addresses.

use crate::architecture::{Architecture, Intake, Layout, Role, listen};
use crate::config::{Config, ServerError};

#[derive(Debug)]
pub(crate) struct SharedNothing;

impl Architecture for SharedNothing {
    fn name(&self) -> &'static str {
        "shared-nothing"
    }

    fn help(&self) -> &'static str {
        "a loop for each thread with its own SO_REUSEPORT listener: nothing is handed over or shared"
    }

    fn threads(&self, config: &Config) -> Result<Layout, ServerError> {
        let (first, address) = listen(config.listen, config, true)?;
        let mut roles = vec![Role::Loop(Intake::Listener(first))];
        for _ in 1..config.threads {
            let (listener, _) = listen(address, config, true)?;
            roles.push(Role::Loop(Intake::Listener(listener)));
        }
        Ok(Layout { address, roles })
    }
}
