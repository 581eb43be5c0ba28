//! Which engine drives a load.

use crate::spec::{EngineChoice, LoadSpec, Pacing};

/// Which engine a generator has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Choice {
    Epoll,
    IoUring,
    /// Io_uring, or epoll where there is none.
    Either,
    #[cfg(feature = "http2")]
    Http2,
}

/// The choice for a validated `spec`; see [`EngineChoice::Auto`] for the reasons.
pub(crate) fn choose(spec: &LoadSpec) -> Choice {
    let batches = match spec.pacing {
        Pacing::Closed => spec.keep_alive && !spec.workers.busy_poll,
        Pacing::Interleaved(_) => spec.keep_alive,
        Pacing::Thinking { .. } | Pacing::Open { .. } | Pacing::Stages { .. } => false,
    };
    match spec.workers.engine {
        #[cfg(feature = "http2")]
        _ if spec.is_multiplexed() => Choice::Http2,
        EngineChoice::Epoll => Choice::Epoll,
        EngineChoice::IoUring => Choice::IoUring,
        // A long body takes a system call for each piece whichever way.
        EngineChoice::Auto if spec.content.body_file.is_some() => Choice::Epoll,
        EngineChoice::Auto if batches && !spec.route.target.is_tls() => Choice::Either,
        EngineChoice::Auto => Choice::Epoll,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interleaving::{Interleaving, TURN_NS_MIN};
    use crate::spec::Workers;
    use crate::target::Target;

    #[test]
    fn closed_loops_that_keep_plain_connections_take_either() {
        let plain = LoadSpec::new(Target::parse("http://h/").unwrap());
        let tls = LoadSpec::new(Target::parse("https://h/").unwrap());
        let open = Pacing::Open { rate_hz: 1.0, gaps: crate::spec::Gaps::Fixed };
        let with = |engine, pacing: Pacing, keep_alive, busy_poll| {
            let workers = Workers { engine, busy_poll, ..Workers::default() };
            choose(&LoadSpec { pacing, keep_alive, workers, ..plain.clone() })
        };
        assert_eq!((choose(&plain), choose(&tls)), (Choice::Either, Choice::Epoll));
        assert_eq!(with(EngineChoice::Auto, open.clone(), true, false), Choice::Epoll);
        assert_eq!(with(EngineChoice::Auto, Pacing::Closed, false, false), Choice::Epoll);
        assert_eq!(with(EngineChoice::Auto, Pacing::Closed, true, true), Choice::Epoll);
        let turns = Interleaving {
            begin_ns: 0,
            turn_ns: TURN_NS_MIN,
            rest_ns: 0,
            arms: 2,
            place: 0,
            seed: 0,
            slices: None,
        };
        assert_eq!(with(EngineChoice::Auto, Pacing::Interleaved(turns), true, true), Choice::Either);
        assert_eq!(with(EngineChoice::IoUring, open, true, false), Choice::IoUring);
        assert_eq!(with(EngineChoice::Epoll, Pacing::Closed, true, false), Choice::Epoll);
    }
}
