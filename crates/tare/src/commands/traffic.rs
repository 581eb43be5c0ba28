//! The load that was asked for: arguments to the generator's own words.

use crate::cli::traffic::{Engine, TlsArgs, TrafficArgs};
use crate::cli::values::WeightedPath;
use crate::failure::Failure;
use anyhow::anyhow;
use tare_load::{
    CONNECTIONS_DEFAULT, ClientCertificate, Content, EngineChoice, Expect, Gaps, LoadSpec, Pacing, Protocol,
    Route, Target, Tls, Trust, WeightedUrl, Workers,
};

/// The load to `target`; its threads are 1 unless given, its CPUs the caller's to choose.
pub fn spec(args: &TrafficArgs, target: Target) -> Result<LoadSpec, Failure> {
    let (volume, shape) = (&args.volume, &args.shape);
    let message = &shape.message;
    let (body, body_file) = match (&message.body, &message.body_file) {
        (Some(text), _) => (text.clone().into_bytes(), None),
        (None, Some(path)) => match tare_load::short_body(path).map_err(Failure::usage)? {
            Some(body) => (body, None),
            None => (Vec::new(), Some(path.clone())),
        },
        (None, None) => (Vec::new(), None),
    };
    Ok(LoadSpec {
        content: Content {
            urls: mix(&target, &message.mix)?,
            request_file: message.request_file.clone(),
            method: message.method.to_ascii_uppercase(),
            headers: headers(&message.headers)?,
            body,
            body_file,
            templates: message.template,
            csv_file: message.csv.clone(),
            captures: message.capture.clone(),
        },
        expect: Expect {
            statuses: message.expect_status.clone(),
            headers: headers(&message.expect_header)?,
            body_bytes: message.expect_length,
            body_contains: message.expect_body.clone(),
        },
        connections: volume.connections.unwrap_or(CONNECTIONS_DEFAULT),
        pacing: pacing(args)?,
        keep_alive: !shape.no_keepalive,
        workers: Workers {
            threads: volume.threads.unwrap_or(1),
            cpus: Vec::new(),
            engine: match shape.engine {
                Engine::Auto => EngineChoice::Auto,
                Engine::Epoll => EngineChoice::Epoll,
                Engine::IoUring => EngineChoice::IoUring,
            },
            busy_poll: shape.busy_poll,
        },
        protocol: if shape.http2 { Protocol::Http2 } else { Protocol::Http1 },
        pipeline: if shape.http2 { shape.streams } else { shape.pipeline },
        timeout_ns: u64::try_from(shape.timeout.as_nanos()).unwrap_or(u64::MAX),
        route: Route {
            target: target.clone(),
            connect_to: shape.connect_to.clone(),
            unix_socket: shape.unix.clone(),
            local_addresses: shape.local_addr.clone(),
            tls: tls(&shape.tls),
            follow: shape.follow,
        },
        ..LoadSpec::new(target)
    })
}

fn tls(args: &TlsArgs) -> Tls {
    let trust = match &args.cacert {
        _ if args.insecure => Trust::Anyone,
        Some(path) => Trust::With(path.clone()),
        None => Trust::System,
    };
    let client = args.client_cert.clone().zip(args.client_key.clone());
    let client = client.map(|(chain, key)| ClientCertificate { chain, key });
    Tls { resume: !args.tls_no_reuse, trust, client }
}

fn pacing(args: &TrafficArgs) -> Result<Pacing, Failure> {
    let gaps = if args.shape.poisson { Gaps::Poisson } else { Gaps::Fixed };
    Ok(match (args.volume.rate, &args.volume.steps, args.shape.think) {
        (Some(rate_hz), _, _) => Pacing::Open { rate_hz, gaps },
        (None, Some(steps), _) => Pacing::Stages { stages: steps.0.clone(), gaps },
        (None, None, Some(think)) => {
            Pacing::Thinking { mean_ns: u64::try_from(think.as_nanos()).unwrap_or(u64::MAX), gaps }
        }
        (None, None, None) if args.shape.poisson => {
            return Err(Failure::usage(anyhow!(
                "--poisson has nothing to spread: a closed loop sends when an answer is there (hint: give --rate, --steps or --think)"
            )));
        }
        (None, None, None) => Pacing::Closed,
    })
}

/// The paths of a mix, all at the target's place; whether whole URLs are, the generator judges.
fn mix(target: &Target, paths: &[WeightedPath]) -> Result<Vec<WeightedUrl>, Failure> {
    let url = target.to_string();
    let place = url.strip_suffix(target.path()).unwrap_or(&url);
    let weighted = |path: &WeightedPath| {
        let url =
            if path.path.starts_with('/') { format!("{place}{}", path.path) } else { path.path.clone() };
        let target = Target::parse(&url).map_err(Failure::usage)?;
        Ok(WeightedUrl { target, weight: path.weight })
    };
    paths.iter().map(weighted).collect()
}

/// A header is a name, a colon and a value; what they may hold, the generator judges.
fn headers(given: &[String]) -> Result<Vec<(String, String)>, Failure> {
    given
        .iter()
        .map(|header| {
            let (name, value) = header.split_once(':').ok_or_else(|| {
                Failure::usage(anyhow!("'{header}' is not a header (hint: write it as 'Name: value')"))
            })?;
            Ok((name.to_owned(), value.trim().to_owned()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Args, FromArgMatches};

    fn parse(words: &[&str]) -> Result<LoadSpec, String> {
        let command = TrafficArgs::augment_args(clap::Command::new("x").no_binary_name(true));
        let matches = command.try_get_matches_from(words).map_err(|error| error.to_string())?;
        let args = TrafficArgs::from_arg_matches(&matches).map_err(|error| error.to_string())?;
        spec(&args, Target::parse("https://h/").unwrap()).map_err(|_| "a failure".to_owned())
    }

    #[test]
    fn whom_to_trust_and_where_to_connect() {
        let tls = |words: &[&str]| parse(words).unwrap().route.tls;
        assert_eq!(tls(&[]), Tls::default());
        assert_eq!(tls(&["-k"]).trust, Trust::Anyone);
        assert_eq!(tls(&["--cacert", "a.pem"]).trust, Trust::With("a.pem".into()));
        let client = ClientCertificate { chain: "c".into(), key: "k".into() };
        assert_eq!(tls(&["--client-cert", "c", "--client-key", "k"]).client, Some(client));
        let route = parse(&["--connect-to", "[::1]:444", "--follow"]).unwrap().route;
        assert_eq!((route.goes_to().to_string().as_str(), route.follow), ("[::1]:444", true));
        for (words, why) in [
            (&["-k", "--cacert", "a"][..], "cannot be used with"),
            (&["--client-cert", "c"], "--client-key"),
            (&["--client-key", "k"], "--client-cert"),
            (&["--connect-to", "h"], "HOST:PORT"),
            (&["--connect-to", "h:1", "--unix", "s"], "cannot be used with"),
            (&["--follow", "--mix", "1:/a"], "cannot be used with"),
        ] {
            let error = parse(words).unwrap_err();
            assert!(error.contains(why), "{words:?}: {error}");
        }
    }

    #[test]
    fn a_long_body_stays_in_its_file() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let content = |bytes: u64| {
            file.as_file().set_len(bytes).unwrap();
            parse(&["--body-file", file.path().to_str().unwrap()]).unwrap().content
        };
        let (short, long) = (content(1 << 20), content((1 << 20) + 1));
        assert_eq!((short.body.len(), short.body_file), (1 << 20, None));
        assert_eq!((long.body.len(), long.body_file.as_deref()), (0, Some(file.path())));
        assert!(parse(&["--body-file", "/nowhere"]).is_err());
    }
}
