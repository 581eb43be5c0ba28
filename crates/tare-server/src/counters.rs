//! What each loop has done so far.

use std::sync::atomic::{AtomicU64, Ordering};

use tare_http::status::Status;

macro_rules! counters {
    ($(#[doc = $doc:literal] $name:ident,)*) => {
        /// Counts of one loop, all from zero upwards but `open`.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
        pub struct Counts { $(#[doc = $doc] pub $name: u64,)* }

        /// The published [`Counts`] of one loop: written by it alone, read by anyone.
        #[derive(Debug, Default)]
        #[repr(align(128))]
        pub struct Counters { $($name: AtomicU64,)* }

        impl Counters {
            pub(crate) fn publish(&self, counts: &Counts) {
                $(self.$name.store(counts.$name, Ordering::Relaxed);)*
            }

            /// The counts as last published: once for each turn of the loop.
            pub fn read(&self) -> Counts {
                Counts { $($name: self.$name.load(Ordering::Relaxed),)* }
            }
        }

        impl Counts {
            /// Name, meaning and whether it goes down again, of every count.
            pub const METRICS: &[(&str, &str, bool)] =
                &[$((stringify!($name), $doc, matches!(stringify!($name).as_bytes(), b"open"))),*];

            /// Both together, count by count.
            pub fn plus(&self, other: &Counts) -> Counts {
                Counts { $($name: self.$name.saturating_add(other.$name),)* }
            }

            /// The counts in the order of [`Counts::METRICS`].
            pub fn values(&self) -> [u64; Self::METRICS.len()] {
                [$(self.$name),*]
            }
        }
    };
}

counters! {
    /// Connections accepted.
    accepted,
    /// Connections open now.
    open,
    /// Connections answered with 503 because too many were open.
    turned_away,
    /// Bodies answered with 503 because all of them together took as much memory as they may.
    bodies_refused,
    /// Times that accepting paused because descriptors or memory ran out, or because the server was full.
    accept_pauses,
    /// Connections closed by a timeout.
    timed_out,
    /// Answers of class 2xx.
    answers_2xx,
    /// Answers of class 3xx.
    answers_3xx,
    /// Answers of class 4xx.
    answers_4xx,
    /// Answers of class 5xx.
    answers_5xx,
    /// Handlers that panicked (each is one 500).
    panics,
    /// Lines of the access log dropped because its buffer was full.
    log_lines_dropped,
    /// Bytes received.
    received_bytes,
    /// Bytes sent.
    sent_bytes,
}

impl Counts {
    /// Answers of every class.
    pub fn answers(&self) -> u64 {
        self.answers_2xx + self.answers_3xx + self.answers_4xx + self.answers_5xx
    }

    #[inline]
    pub(crate) fn answered(&mut self, status: Status) {
        match status.code() {
            ..300 => self.answers_2xx += 1,
            300..400 => self.answers_3xx += 1,
            400..500 => self.answers_4xx += 1,
            _ => self.answers_5xx += 1,
        }
    }
}
