//! The load generator: pacing, stopping and protocol as separate parts.
