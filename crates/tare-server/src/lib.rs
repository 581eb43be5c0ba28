//! The HTTP server: one connection state machine, a loop per thread.
