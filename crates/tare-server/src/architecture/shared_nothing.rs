//! Every loop has its own listener; the kernel distributes connections by the hash of their addresses.

use std::os::fd::OwnedFd;

use tare_sys::net::Sharing;
use tare_sys::steer;

use crate::architecture::layout::{Architecture, Intake, Layout, Role, listen};
use crate::error::ServerError;
use crate::listening::{Listening, Steering};

#[derive(Debug)]
pub(crate) struct SharedNothing;

impl Architecture for SharedNothing {
    fn name(&self) -> &'static str {
        "shared-nothing"
    }

    fn help(&self) -> &'static str {
        "a loop for each thread with its own SO_REUSEPORT listener: nothing is handed over or shared"
    }

    fn threads(&self, listening: &Listening) -> Result<Layout, ServerError> {
        let (first, address) = listen(listening.address, listening, Sharing::First)?;
        let mut listeners = vec![first];
        for _ in 1..listening.threads {
            listeners.push(listen(address, listening, Sharing::Next)?.0);
        }
        steer_listeners(listening, &listeners)?;
        let roles = listeners.into_iter().map(|l| Role::Loop(Intake::Listener(l))).collect();
        Ok(Layout { address, roles })
    }
}

/// Which listener gets a connection, where that is not left to the hash.
fn steer_listeners(listening: &Listening, listeners: &[OwnedFd]) -> Result<(), ServerError> {
    let cpus: Vec<u32> = (0..listeners.len()).filter_map(|i| listening.cpu_of(i)).collect();
    match listening.steering {
        Steering::Hash => Ok(()),
        Steering::IncomingCpu => listeners
            .iter()
            .zip(&cpus)
            .try_for_each(|(listener, cpu)| steer::set_incoming_cpu(listener, *cpu))
            .map_err(|source| ServerError::Option { option: "SO_INCOMING_CPU", source }),
        Steering::CpuProgram => steer::steer_by_cpu(&listeners[0], &cpus)
            .map_err(|source| ServerError::Option { option: "SO_ATTACH_REUSEPORT_CBPF", source }),
    }
}
