//! What is asked of a generator.

/// What answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Serves {
    /// The floor: a constant, whatever was asked.
    Constant,
    /// nginx, through TLS.
    Tls,
    /// nginx, which closes each connection after one answer.
    OneEach,
}

/// What is asked of a generator.
pub struct Load {
    pub name: &'static str,
    pub connections: u32,
    pub depth: u32,
    pub server: Serves,
    pub by: &'static [&'static str],
}
