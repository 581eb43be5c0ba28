//! Copies of a service on one host: what they take from each other.
//!
//! Of an instance alone (a) and together with the others (t), both on the same CPUs, X = b / C by the iron law (b CPUs busy, C the CPU time of
//! a unit of work), so that ln(X_a/X_t) = ln(b_a/b_t) + ln(C_t/C_a), exactly. The first part is divided among the waits that grew; what
//! is not seen among them is not explained. The second is divided by clock and IPC with a PMU; without one by the program's own code and
//! the kernel: a factor that both grew by is that of slower memory or shared cores, what the kernel grew by beyond it is the kernel's own.
//!
//! `taken` divides, `summary` says it in a line, `fleet` is what instances come to together and how evenly they lose.

mod fleet;
mod summary;
mod taken;

pub use fleet::{fairness, jain, together};
pub use summary::summary;
pub use taken::{Beside, taken};

#[cfg(test)]
mod tests;
