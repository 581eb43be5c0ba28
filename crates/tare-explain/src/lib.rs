//! Observations to ledgers to verdict: pure functions of the record.
