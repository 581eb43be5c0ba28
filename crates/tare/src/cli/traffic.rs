//! The load that tare's own generator makes: the same arguments in `tare load` and `tare run`.

use super::values;
use clap::{Args, ValueEnum};
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;
use tare_load::{Capture, HostPort};

/// Every argument here, for those that exclude them all: somebody else's generator, a program.
pub const ALL: [&str; 35] = [
    "connections",
    "threads",
    "rate",
    "steps",
    "poisson",
    "think",
    "pipeline",
    "http2",
    "streams",
    "timeout",
    "no_keepalive",
    "busy_poll",
    "engine",
    "local_addr",
    "unix",
    "connect_to",
    "follow",
    "insecure",
    "cacert",
    "client_cert",
    "client_key",
    "tls_no_reuse",
    "method",
    "headers",
    "body",
    "body_file",
    "mix",
    "request_file",
    "template",
    "csv",
    "capture",
    "expect_status",
    "expect_header",
    "expect_length",
    "expect_body",
];

/// What is sent, how and from where.
#[derive(Debug, Args)]
#[command(next_help_heading = "Load")]
pub struct TrafficArgs {
    #[command(flatten)]
    pub volume: VolumeArgs,
    #[command(flatten)]
    pub shape: ShapeArgs,
}

/// How much is sent: what 'tare scale' varies.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Load")]
pub struct VolumeArgs {
    /// Open connections [default: 64; compare: 8 for each CPU].
    ///
    /// From 1 to 1,000,000; 1k is 1,000. In 'tare compare' the default is 8 for each CPU of the servers.
    #[arg(short = 'c', long, value_name = "N", value_parser = values::connections)]
    pub connections: Option<u32>,
    /// Generator threads [default: one for each CPU it is given].
    ///
    /// From 1 to 1024, and no more than connections.
    #[arg(short = 't', long, value_name = "N", value_parser = values::at_once)]
    pub threads: Option<u32>,
    /// Requests per second (open loop); without it, closed loop.
    ///
    /// The latency of a request counts from when it was due, so that a stall of the server shows in every request that it delayed. 5k is
    /// 5,000. 'tare help pacing' explains both loops.
    #[arg(short = 'R', long, value_name = "PER_SECOND", allow_negative_numbers = true, value_parser = values::rate_hz)]
    pub rate: Option<f64>,
    /// Rates one after the other, as 1k:5s,1k-10k:20s,10k:5s.
    ///
    /// Each stage is RATE:TIME, or FROM-TO:TIME for a ramp.
    #[arg(long, value_name = "STAGES", value_parser = values::stages, conflicts_with_all = ["rate", "think"])]
    pub steps: Option<values::Stages>,
}

/// What is sent, and how, however much it is.
#[derive(Debug, Args)]
#[command(next_help_heading = "Load")]
pub struct ShapeArgs {
    /// Random gaps between requests, as of independent users.
    ///
    /// Gaps of a Poisson process, as many users make them (with --rate, --steps or --think).
    #[arg(long)]
    pub poisson: bool,
    /// Pause after each answer, as a user does (closed loop).
    #[arg(long, value_name = "TIME", value_parser = values::positive_duration, conflicts_with = "rate")]
    pub think: Option<Duration>,
    /// Requests in flight on each connection.
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with = "http2", value_parser = values::at_once)]
    pub pipeline: u32,
    /// HTTP/2: on https by ALPN, on http at once (h2c).
    #[arg(long)]
    pub http2: bool,
    /// HTTP/2: streams at once on each connection.
    #[arg(long, value_name = "N", default_value_t = 1, requires = "http2", value_parser = values::at_once)]
    pub streams: u32,
    /// Give up on an answer after this.
    #[arg(short = 'T', long, value_name = "TIME", default_value = "2s", value_parser = values::positive_duration)]
    pub timeout: Duration,
    /// A connection for each request.
    #[arg(long)]
    pub no_keepalive: bool,
    /// Spin instead of sleeping: no wake-up in the latencies.
    ///
    /// Each thread takes a whole CPU.
    #[arg(long)]
    pub busy_poll: bool,
    /// How bytes are moved: auto, epoll or io-uring.
    #[arg(long, value_name = "NAME", value_enum, default_value_t = Engine::Auto)]
    pub engine: Engine,
    /// Connect from these addresses, one after the other.
    ///
    /// With commas between them. Each has ports for about 28,000 connections to one server.
    #[arg(long, value_name = "ADDR", value_delimiter = ',')]
    pub local_addr: Vec<IpAddr>,
    /// Connect to this Unix socket instead of the URL's host and port.
    #[arg(long, value_name = "PATH")]
    pub unix: Option<PathBuf>,
    /// Connect there instead of the URL's host and port.
    ///
    /// The URL's own stay in the Host header, and the certificate must be theirs.
    #[arg(long, value_name = "HOST:PORT", conflicts_with = "unix")]
    pub connect_to: Option<HostPort>,
    /// First go where the URL's redirects lead.
    ///
    /// Before the load, up to 10 of them on the same host: the load then goes to the last URL alone.
    #[arg(long, conflicts_with_all = ["mix", "request_file"])]
    pub follow: bool,

    #[command(flatten)]
    pub tls: TlsArgs,
    #[command(flatten)]
    pub message: MessageArgs,
}

/// https: whom to trust, and who the generator is.
#[derive(Debug, Args)]
#[command(next_help_heading = "TLS (https)")]
pub struct TlsArgs {
    /// Do not verify the server's certificate.
    ///
    /// Without this it is verified (chain and name), unless the server is on this host.
    #[arg(short = 'k', long, conflicts_with = "cacert")]
    pub insecure: bool,
    /// Trust the certificates in this file (PEM) as well.
    ///
    /// And verify servers on this host too.
    #[arg(long, value_name = "FILE")]
    pub cacert: Option<PathBuf>,
    /// Show this certificate to a server that asks for one.
    ///
    /// With its chain (PEM).
    #[arg(long, value_name = "FILE", requires = "client_key")]
    pub client_cert: Option<PathBuf>,
    /// The private key of --client-cert (PEM, without password).
    #[arg(long, value_name = "FILE", requires = "client_cert")]
    pub client_key: Option<PathBuf>,
    /// A full handshake for each connection, no resumed sessions.
    #[arg(long)]
    pub tls_no_reuse: bool,
}

/// What moves the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Engine {
    /// io-uring for closed loops over connections that are kept, where the kernel has it; else epoll.
    Auto,
    /// Readiness by epoll.
    Epoll,
    /// Batched submission by io_uring (Linux 6.1; not for https).
    IoUring,
}

/// What is asked and what must be answered.
#[derive(Debug, Args)]
#[command(next_help_heading = "Requests")]
pub struct MessageArgs {
    /// Method of the requests, as POST.
    #[arg(short = 'm', long, value_name = "METHOD", default_value = "GET")]
    pub method: String,
    /// Add a header, 'Name: value'; may be given several times.
    #[arg(short = 'H', long = "header", value_name = "HEADER")]
    pub headers: Vec<String>,
    /// Send this body.
    #[arg(long, value_name = "TEXT", conflicts_with = "body_file")]
    pub body: Option<String>,
    /// Send this file as the body.
    ///
    /// Of more than 1 MiB it is sent from the disk piece by piece, however long (without --template, and by HTTP/1.1 without --pipeline),
    /// and --timeout counts from when its last piece was sent.
    #[arg(long, value_name = "FILE")]
    pub body_file: Option<PathBuf>,
    /// Ask for this path this often, as 9:/cart; repeatable.
    ///
    /// This path with this weight, instead of the URL's own; give it several times: --mix 9:/ --mix 1:/cart. All go to one server.
    #[arg(long, value_name = "WEIGHT:PATH", value_parser = values::weighted_path, conflicts_with = "request_file")]
    pub mix: Vec<values::WeightedPath>,
    /// Take the requests from this file, one a line.
    ///
    /// A line is 'METHOD PATH', or JSON with path, method, headers, body; the file is begun again at its end. 'tare help requests' has
    /// examples.
    #[arg(long, value_name = "FILE")]
    pub request_file: Option<PathBuf>,
    /// Replace {{counter}} and the like anew in each request.
    ///
    /// {{counter}}, {{random:1-9}}, {{hex:8}}, {{csv:COLUMN}} and {{capture:NAME}}. 'tare help templates' explains them.
    #[arg(long)]
    pub template: bool,
    /// The rows of {{csv:COLUMN}}; its first line names them.
    ///
    /// The first line of the file names the columns.
    #[arg(long, value_name = "FILE", requires = "template")]
    pub csv: Option<PathBuf>,
    /// Keep a value of each answer for {{capture:NAME}}.
    ///
    /// NAME=header:HEADER, or NAME=body:AFTER..BEFORE.
    #[arg(long, value_name = "NAME=FROM", requires = "template", value_parser = values::capture)]
    pub capture: Vec<Capture>,
    /// Any other status is an error.
    ///
    /// Several may stand there, with commas between them: 200,304.
    #[arg(long, value_name = "STATUS", value_delimiter = ',', value_parser = clap::value_parser!(u16).range(100..=999))]
    pub expect_status: Vec<u16>,
    /// An answer without this header is an error.
    ///
    /// Or without this text in it: 'Name: text'.
    #[arg(long, value_name = "HEADER")]
    pub expect_header: Vec<String>,
    /// An answer of another length is an error.
    #[arg(long, value_name = "BYTES")]
    pub expect_length: Option<u64>,
    /// An answer that does not contain this is an error.
    ///
    /// In its first 64 KiB.
    #[arg(long, value_name = "TEXT")]
    pub expect_body: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_are_listed() {
        let command = TrafficArgs::augment_args(clap::Command::new("x"));
        let ids: Vec<&str> = command.get_arguments().map(|argument| argument.get_id().as_str()).collect();
        assert_eq!(ids, ALL);
    }
}
