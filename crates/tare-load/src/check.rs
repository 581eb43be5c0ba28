//! Whether a load can be made as asked, before anything is started.

use crate::request::{BATCH_BYTES_MAX, Program};
use crate::spec::{
    CONNECTIONS_MAX, EngineChoice, IN_FLIGHT_MAX, LoadSpec, PIPELINE_MAX, Pacing, RATE_HZ_MAX, STAGE_NS_MAX,
    STAGES_MAX, SpecError, THINK_NS_MAX, THREADS_MAX, Trust, UPLOADS_MAX,
};
use crate::tls_files;
use crate::trust;

impl LoadSpec {
    /// Whether this load can be made; reads the files that it names.
    ///
    /// # Errors
    /// The first [`SpecError`] in it.
    pub fn validate(&self) -> Result<(), SpecError> {
        self.compile().map(drop)
    }

    /// Checks everything and compiles what is to be sent.
    pub(crate) fn compile(&self) -> Result<Program, SpecError> {
        self.validate_counts()?;
        self.validate_tls()?;
        let program = Program::load(self)?;
        self.validate_request(&program)?;
        Ok(program)
    }

    fn validate_counts(&self) -> Result<(), SpecError> {
        check_count("connections", self.connections, CONNECTIONS_MAX)?;
        check_count("threads", self.workers.threads, THREADS_MAX)?;
        check_count("pipeline depth", self.pipeline, PIPELINE_MAX)?;
        let (threads, connections, pipeline) = (self.workers.threads, self.connections, self.pipeline);
        if threads > connections {
            return Err(SpecError::MoreThreadsThanConnections { threads, connections });
        }
        if !self.keep_alive && pipeline > 1 {
            return Err(SpecError::PipelineWithoutKeepAlive);
        }
        if self.workers.engine == EngineChoice::IoUring && self.route.target.is_tls() {
            return Err(SpecError::TlsByIoUring);
        }
        if self.is_multiplexed() && self.workers.engine == EngineChoice::IoUring {
            return Err(SpecError::Http2ByIoUring);
        }
        if self.is_multiplexed() && cfg!(not(feature = "http2")) {
            return Err(SpecError::NoHttp2);
        }
        if u64::from(connections) * u64::from(pipeline) > IN_FLIGHT_MAX {
            return Err(SpecError::TooManyInFlight { connections, pipeline });
        }
        check_pacing(&self.pacing)?;
        if self.requests_max == Some(0) {
            return Err(SpecError::NoRequests);
        }
        if !(1_000_000..=3_600_000_000_000).contains(&self.timeout_ns) {
            return Err(SpecError::Timeout { given_ns: self.timeout_ns });
        }
        Ok(())
    }

    /// What the user names; what this machine trusts is read where it is needed.
    fn validate_tls(&self) -> Result<(), SpecError> {
        let tls = &self.route.tls;
        let are_named = tls.client.is_some() || matches!(tls.trust, Trust::With(_));
        // A redirect may lead to https.
        if are_named && !self.route.target.is_tls() && !self.route.follow {
            return Err(SpecError::CertificatesWithoutTls);
        }
        if let Trust::With(path) = &tls.trust {
            trust::with(path)?;
        }
        Ok(tls.client.as_ref().map_or(Ok(()), |client| tls_files::client(client).map(drop))?)
    }

    fn validate_request(&self, program: &Program) -> Result<(), SpecError> {
        if program.upload().is_some() {
            match self {
                _ if self.pipeline > 1 && !self.is_multiplexed() => return Err(SpecError::UploadPipelined),
                _ if matches!(self.pacing, Pacing::Interleaved(_)) => {
                    return Err(SpecError::UploadInterleaved);
                }
                // By HTTP/1 the connections of a thread share one piece.
                _ if self.is_multiplexed()
                    && u64::from(self.connections) * u64::from(self.pipeline) > UPLOADS_MAX =>
                {
                    return Err(SpecError::UploadsInFlight);
                }
                _ if self.content.templates => return Err(SpecError::UploadWithTemplates),
                _ => {}
            }
        }
        let bytes = program.constant().map_or(0, <[u8]>::len);
        if bytes * self.depth() as usize > BATCH_BYTES_MAX {
            return Err(SpecError::RequestTooLong { bytes, pipeline: self.pipeline });
        }
        Ok(())
    }
}

fn check_count(what: &'static str, given: u32, max: u32) -> Result<(), SpecError> {
    if (1..=max).contains(&given) { Ok(()) } else { Err(SpecError::Count { what, given, max }) }
}

fn check_pacing(pacing: &Pacing) -> Result<(), SpecError> {
    let rate = |given: f64, least: bool| {
        let fits = given <= RATE_HZ_MAX && (given > 0.0 || (least && given == 0.0));
        if fits { Ok(()) } else { Err(SpecError::Rate { given }) }
    };
    match pacing {
        Pacing::Closed => Ok(()),
        Pacing::Interleaved(turns) if turns.is_possible() => Ok(()),
        Pacing::Interleaved(turns) => Err(SpecError::Interleaving { given: *turns }),
        Pacing::Thinking { mean_ns, .. } if (1..=THINK_NS_MAX).contains(mean_ns) => Ok(()),
        Pacing::Thinking { mean_ns, .. } => Err(SpecError::Think { given_ns: *mean_ns }),
        Pacing::Open { rate_hz, .. } => rate(*rate_hz, false),
        Pacing::Stages { stages, .. } => {
            let sends = stages.iter().any(|stage| stage.from_hz > 0.0 || stage.to_hz > 0.0);
            if !sends || stages.len() > STAGES_MAX {
                return Err(SpecError::Stages { given: stages.len() });
            }
            for stage in stages {
                rate(stage.from_hz, true)?;
                rate(stage.to_hz, true)?;
                if !(1..=STAGE_NS_MAX).contains(&stage.for_ns) {
                    return Err(SpecError::StageLength { given_ns: stage.for_ns });
                }
            }
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::WeightedUrl;
    use crate::spec::{Gaps, Stage};
    use crate::target::Target;

    fn spec() -> LoadSpec {
        LoadSpec::new(Target::parse("http://127.0.0.1/").unwrap())
    }

    #[test]
    fn stages_have_a_length_and_a_mean() {
        let stage = |from_hz, to_hz, for_s: u64| Stage { from_hz, to_hz, for_ns: for_s * 1_000_000_000 };
        let stages = vec![stage(100.0, 100.0, 1), stage(100.0, 500.0, 2), stage(0.0, 0.0, 1)];
        let pacing = Pacing::Stages { stages, gaps: Gaps::Fixed };
        assert_eq!((pacing.stages_ns(), pacing.rate_hz()), (Some(4_000_000_000), Some(175.0)));
        assert_eq!((Pacing::Closed.stages_ns(), Pacing::Closed.rate_hz()), (None, None));
    }

    #[test]
    fn a_load_can_be_aimed_elsewhere() {
        let mut spec = spec();
        spec.content.urls = vec![url("http://127.0.0.1/a?b", 3)];
        let moved = spec.aimed_at(Target::parse("http://[::1]:81/x").unwrap());
        assert_eq!(moved.content.urls, [url("http://[::1]:81/a?b", 3)]);
        assert_eq!(moved.validate(), Ok(()));
    }

    fn url(url: &str, weight: u32) -> WeightedUrl {
        WeightedUrl { target: Target::parse(url).unwrap(), weight }
    }

    fn fault(change: impl FnOnce(&mut LoadSpec)) -> String {
        let mut spec = spec();
        change(&mut spec);
        spec.validate().unwrap_err().to_string()
    }

    #[test]
    fn defaults_are_valid() {
        assert_eq!(spec().validate(), Ok(()));
    }

    #[test]
    fn each_mistake_has_its_own_word() {
        let header = |name: &str, value: &str| {
            fault(|s| s.content.headers = vec![(name.to_owned(), value.to_owned())])
        };
        let rate = |rate_hz| fault(|s| s.pacing = Pacing::Open { rate_hz, gaps: Gaps::Fixed });
        insta::assert_snapshot!(
            [
                fault(|s| s.connections = 0),
                fault(|s| s.connections = CONNECTIONS_MAX + 1),
                fault(|s| s.workers.threads = 0),
                fault(|s| s.workers.threads = 2),
                fault(|s| s.pipeline = 0),
                fault(|s| (s.pipeline, s.connections) = (1024, 1 << 15)),
                rate(0.0),
                rate(f64::NAN),
                rate(f64::INFINITY),
                rate(-1.0),
                fault(|s| s.timeout_ns = 0),
                fault(|s| s.timeout_ns = u64::MAX),
                fault(|s| s.content.method = "get".to_owned()),
                fault(|s| s.content.method = "CONNECT".to_owned()),
                header("", "x"),
                header("a b", "x"),
                header("X", "a\r\nEvil: 1"),
                header("content-Length", "5"),
                header("X", &"y".repeat(1 << 20)),
                fault(|s| (s.content.body, s.pipeline) = (vec![b'x'; 1 << 20], 17)),
                fault(|s| s.content.urls = vec![url("http://127.0.0.1:81/", 1)]),
                fault(|s| s.content.urls = vec![url("http://127.0.0.1/", 0)]),
                fault(|s| s.requests_max = Some(0)),
                fault(|s| (s.keep_alive, s.pipeline) = (false, 2)),
                fault(|s| s.pacing = Pacing::Thinking { mean_ns: 0, gaps: Gaps::Fixed }),
                fault(|s| s.pacing = Pacing::Stages { stages: Vec::new(), gaps: Gaps::Fixed }),
                fault(|s| s.content.csv_file = Some("/nowhere.csv".into())),
                fault(|s| {
                    (s.workers.engine, s.route.target) =
                        (EngineChoice::IoUring, Target::parse("https://[::1]/").unwrap());
                }),
            ]
            .join("\n")
        );
    }
}
