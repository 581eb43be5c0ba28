//! Resolves a plan, runs trials, drives the system under test, guards the machine.
