//! `https`: whom to trust, and who we are: plain data.

use std::path::PathBuf;

/// How `https` is spoken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tls {
    /// Resume sessions when connections are opened again.
    pub resume: bool,
    /// Whose certificates are taken.
    pub trust: Trust,
    /// What is shown to a server that asks who we are.
    pub client: Option<ClientCertificate>,
}

/// Whose certificates are taken.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Trust {
    /// What this machine trusts. A server on this host is not verified: one under test has seldom a public certificate.
    #[default]
    System,
    /// What this machine trusts and what stands in this file (PEM); a server on this host is verified too.
    With(PathBuf),
    /// Everybody's.
    Anyone,
}

/// A client's certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientCertificate {
    /// It, and those between it and its root (PEM).
    pub chain: PathBuf,
    /// Its private key (PEM).
    pub key: PathBuf,
}

impl Default for Tls {
    fn default() -> Self {
        Tls { resume: true, trust: Trust::System, client: None }
    }
}
