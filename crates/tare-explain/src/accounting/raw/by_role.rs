//! An amount for each role.

use tare_model::observation::Role;

/// Every role, in the order of the outcome.
pub(crate) const ROLES: [Role; 5] = [Role::Sut, Role::Downstream, Role::Load, Role::Tare, Role::Other];

/// An amount for each role.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct ByRole {
    pub sut: f64,
    pub downstream: f64,
    pub load: f64,
    pub tare: f64,
    pub other: f64,
}

impl ByRole {
    pub fn of(&self, role: Role) -> f64 {
        match role {
            Role::Sut => self.sut,
            Role::Downstream => self.downstream,
            Role::Load => self.load,
            Role::Tare => self.tare,
            Role::Other => self.other,
        }
    }

    pub fn of_mut(&mut self, role: Role) -> &mut f64 {
        match role {
            Role::Sut => &mut self.sut,
            Role::Downstream => &mut self.downstream,
            Role::Load => &mut self.load,
            Role::Tare => &mut self.tare,
            Role::Other => &mut self.other,
        }
    }

    pub fn sum(&self) -> f64 {
        self.sut + self.downstream + self.load + self.tare + self.other
    }

    pub fn absorb(&mut self, other: &ByRole) {
        for role in ROLES {
            *self.of_mut(role) += other.of(role);
        }
    }
}
