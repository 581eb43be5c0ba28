//! Copies of a service on one host: what each does alone and together with the others, and what took the difference.

use crate::Reading;
use crate::level_accounting::LevelAccounting;
use crate::outcome::Estimate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One of the copies of a service that ran at once.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Instance {
    /// Which, from 1.
    pub i: u32,
    /// CPUs that it was held on.
    pub cpus: Vec<u32>,
    /// Of these the ones that another instance was held on as well; empty where each had its own.
    #[serde(default)]
    pub shared_cpus: Vec<u32>,
    /// CPUs that its load generator was held on; empty: the generator chose among those that the instance has not, or there was none.
    #[serde(default)]
    pub load_cpus: Vec<u32>,
    /// While no other instance ran.
    pub alone: InstanceState,
    /// While all instances ran, at the highest level.
    pub together: InstanceState,
    /// What it keeps of its figure: together over alone, as a share; the interval is over blocks.
    pub kept: Reading<Estimate>,
    /// What took the rest, the largest first: the shares sum to 1. Empty where it lost less than 3 %.
    pub taken: Vec<Taken>,
    /// The same in a line: `CPU still 390 %, half the work: IPC 0.58 → 0.29`; missing where a state was not measured.
    pub summary: Reading<String>,
}

/// An instance in one of two states.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct InstanceState {
    /// Its figure.
    pub estimate: Reading<Estimate>,
    /// Every valid sample, one a block, in the figure's unit.
    pub samples: Vec<f64>,
    /// Instructions in each cycle; missing without a PMU.
    pub ipc: Reading<f64>,
    /// Where its time went: medians over the blocks.
    pub accounting: Reading<LevelAccounting>,
}

/// What took efficiency from an instance when others ran beside it.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Taken {
    /// By what.
    pub by: TakenBy,
    /// Its share of ln(alone/together); negative where it helped. The shares of an instance sum to 1.
    pub share: f64,
    /// The figures behind it, in words.
    pub evidence: String,
}

/// What instances on one host take from each other, and what they lose beside that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TakenBy {
    /// Waiting for a CPU on which others ran: other instances, their generators, anybody else.
    Cpu,
    /// Caches, memory bandwidth and cores that are shared (SMT): the same work needs more CPU time, or IPC falls.
    Memory,
    /// A slower clock.
    Clock,
    /// More CPU time in the kernel for a request, beyond what the program's own code needs more.
    NetworkStack,
    /// The same of a program that is no server.
    Kernel,
    /// Programs that it calls.
    Downstream,
    /// Its load generator gave less.
    Generator,
    /// A CPU quota.
    Quota,
    /// The host of this virtual machine ran others.
    Host,
    /// The disk, or pages of memory.
    Disk,
    /// The program itself: locks, its own threads on one CPU, sleep, more instructions.
    Program,
    /// None of these was seen to grow.
    NotExplained,
}

impl TakenBy {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            TakenBy::Cpu => "waiting for a CPU that others use",
            TakenBy::Memory => "caches, memory or shared cores",
            TakenBy::Clock => "a slower clock",
            TakenBy::NetworkStack => "the kernel (network stack, switches)",
            TakenBy::Kernel => "the kernel",
            TakenBy::Downstream => "programs that it calls",
            TakenBy::Generator => "its load generator",
            TakenBy::Quota => "a CPU quota",
            TakenBy::Host => "the host of this VM",
            TakenBy::Disk => "the disk, or pages of memory",
            TakenBy::Program => "the program itself",
            TakenBy::NotExplained => "not explained",
        }
    }
}

/// How evenly the instances of a level lose.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Fairness {
    /// How many ran at once.
    pub n: f64,
    /// Jain's index of the shares that each keeps of its figure alone: (Σk)² / (n·Σk²). 1: all keep the same; 1/n: one keeps all
    /// (Jain, Chiu and Hawe 1984). The interval is over blocks.
    pub jain: Reading<Estimate>,
    /// The smallest share that an instance keeps, mean over blocks.
    pub least_kept: Option<f64>,
    /// The largest.
    pub most_kept: Option<f64>,
}
