//! Who logs in.

use std::fmt;

/// User, password and database of a server.
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct Login {
    pub user: Option<String>,
    pub password: Option<String>,
    pub database: Option<String>,
}

/// A password is in no message.
impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login")
            .field("user", &self.user)
            .field("database", &self.database)
            .finish_non_exhaustive()
    }
}

impl Login {
    /// The user's name, or that of the protocol's own user.
    pub fn user_or<'a>(&'a self, default: &'a str) -> &'a str {
        self.user.as_deref().unwrap_or(default)
    }
}
