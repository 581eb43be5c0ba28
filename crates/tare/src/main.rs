//! The command line: arguments, wiring and exit codes. The only room that prints.
fn main() {}
