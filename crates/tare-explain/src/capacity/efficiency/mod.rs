//! Why a figure does not grow with what is varied: the efficiency that a level lost, in parts.
//!
//! Efficiency is (X(n)/n) / (X(n₁)/n₁), n₁ the lowest level. By the iron law X = b / C, with b CPUs busy and C the CPU time of a unit of work, so
//! −ln(efficiency) = ln(B/U) + ln(U/b) + ln(C/C₁), exactly. B = b₁·n/n₁ are the CPUs that n would need if all grew alike, and U = min(B, A) those
//! of them that the SUT may use (A, its CPU entitlement). The first part is what more CPUs would bring; the second is divided among what kept
//! the SUT off CPUs that it may use; the third is what a unit costs more, with a PMU divided by instructions, IPC and clock.
//!
//! Where n needs clearly less than A, CPU time holds nothing (a program that sleeps, or waits for a lock). Then all that is lost is divided by the
//! CPUs that each wait left idle, and those that units need more.

mod seen;
mod split;

pub use seen::{Launch, Seen, seen};
pub use split::lost;

#[cfg(test)]
mod tests;
