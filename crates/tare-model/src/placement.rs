//! Who runs where: the plan that placement makes of a topology.

use crate::CpuSet;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// How the SUT's CPUs are chosen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
#[schemars(with = "String")]
pub enum Policy {
    /// A thread on each core; within one last-level cache, else one node, else near nodes.
    #[default]
    Auto,
    /// A thread on each core; over all nodes and caches in turn.
    Spread,
    /// Within one node, SMT siblings included where its cores do not suffice.
    SameNode,
    /// Whole cores, both SMT threads of each.
    SmtPairs,
    /// Any CPUs; the same seed gives the same ones.
    Random(u64),
}

/// What is not a policy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a placement; hint: auto, spread, same-node, smt-pairs, random or random:SEED")]
pub struct NotAPolicy(pub String);

impl FromStr for Policy {
    type Err = NotAPolicy;

    fn from_str(text: &str) -> Result<Policy, NotAPolicy> {
        match text {
            "auto" => Ok(Policy::Auto),
            "spread" => Ok(Policy::Spread),
            "same-node" => Ok(Policy::SameNode),
            "smt-pairs" => Ok(Policy::SmtPairs),
            "random" => Ok(Policy::Random(0)),
            _ => {
                let seed = text.strip_prefix("random:").and_then(|seed| seed.parse().ok());
                seed.map(Policy::Random).ok_or_else(|| NotAPolicy(text.to_string()))
            }
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Policy::Auto => f.write_str("auto"),
            Policy::Spread => f.write_str("spread"),
            Policy::SameNode => f.write_str("same-node"),
            Policy::SmtPairs => f.write_str("smt-pairs"),
            Policy::Random(seed) => write!(f, "random:{seed}"),
        }
    }
}

impl TryFrom<String> for Policy {
    type Error = NotAPolicy;

    fn try_from(text: String) -> Result<Policy, NotAPolicy> {
        text.parse()
    }
}

impl From<Policy> for String {
    fn from(policy: Policy) -> String {
        policy.to_string()
    }
}

/// CPUs for each role. Roles share a CPU or a core only where the notes say so.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct CpuPlan {
    /// How the SUT's were chosen.
    pub policy: Policy,
    /// The SUT's; of a fleet, all services' together.
    pub sut: CpuSet,
    /// Each service's CPUs; one where there is no fleet.
    pub services: Vec<CpuSet>,
    /// The load generator's; empty where it runs on another host.
    pub generator: CpuSet,
    /// The observers'.
    pub observers: CpuSet,
    /// Where interrupts should be served.
    pub irqs: CpuSet,
    /// What is not as it should be, in words for the user.
    pub notes: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_are_read_as_they_are_written() {
        let all = [Policy::Auto, Policy::Spread, Policy::SameNode, Policy::SmtPairs, Policy::Random(7)];
        for policy in all {
            assert_eq!(policy.to_string().parse(), Ok(policy));
        }
        assert_eq!("random".parse(), Ok(Policy::Random(0)));
        assert!("random:x".parse::<Policy>().is_err() && "".parse::<Policy>().is_err());
    }
}
