//! Two hosts on this machine: network namespaces with a link between them that is nobody else's.
//!
//! A namespace is there as long as somebody lives in it: a process that sleeps, which the journal knows. So they are gone with it,
//! and with the link and all rules, however this ends.

use super::ground::{Ground, until};
use crate::error::LabError;
use crate::process::{Launch, Output, Started};
use crate::running::Session;
use crate::subjects::sut::Sut;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use tare_model::Record;

/// Of the network that is set apart for measuring (RFC 2544).
const SERVER: &str = "198.18.0.1";
const CLIENT: &str = "198.18.0.2";
/// Its name on both hosts.
pub(super) const LINK: &str = "eth";
/// How long a host may take to be there.
const BORN_WITHIN: Duration = Duration::from_secs(5);
/// And a session of a few seconds, on a slow machine.
const SESSION_WITHIN: Duration = Duration::from_secs(120);

/// A server's host and a generator's.
pub(crate) struct Hosts {
    server: Started,
    client: Started,
}

impl Hosts {
    /// Makes both, and the link.
    pub fn new(ground: &Ground<'_>) -> Result<Hosts, LabError> {
        let hosts = Hosts { server: host(ground)?, client: host(ground)? };
        let [server, client] = [&hosts.server, &hosts.client].map(|host| host.pid().to_string());
        let peer = ["type", "veth", "peer", "name", LINK, "netns", &client];
        reported(&words(&[["ip", "link", "add", LINK, "netns", &server].as_slice(), &peer].concat()))?;
        for (host, address) in [(&hosts.server, SERVER), (&hosts.client, CLIENT)] {
            reported(&within(host, &["ip", "addr", "add", &format!("{address}/24"), "dev", LINK]))?;
            reported(&within(host, &["ip", "link", "set", LINK, "up"]))?;
            reported(&within(host, &["ip", "link", "set", "lo", "up"]))?;
            // What the machine uses may answer losses otherwise (BBR hardly at all).
            reported(&within(host, &["sh", "-c", "echo reno > /proc/sys/net/ipv4/tcp_congestion_control"]))?;
        }
        Ok(hosts)
    }

    /// Where a server listens that shall be asked.
    pub fn address() -> &'static str {
        SERVER
    }

    /// The words that run something on the server's host.
    pub fn at_server(&self, what: &[impl AsRef<str>]) -> Vec<String> {
        within(&self.server, what)
    }

    /// The same on the generator's.
    pub fn at_client(&self, what: &[impl AsRef<str>]) -> Vec<String> {
        within(&self.client, what)
    }

    /// An ordinary session on the generator's host, by another process: a thread that went there would leave observers behind.
    pub fn session(
        &self,
        (server, url): (&Sut, &str),
        options: &[String],
        session: &Session,
        ground: &Ground<'_>,
    ) -> Result<Record, LabError> {
        let no_record = || LabError::State("a session between two hosts needs a file for its record".into());
        let file = session.record.clone().ok_or_else(no_record)?;
        let text = |path: &Path| path.display().to_string();
        let (program, output) = (text(ground.program), text(&file));
        let pid = server.pids.first().map_or(String::new(), u32::to_string);
        let run = [program.as_str(), "run", "-q", "-o", &output, "--sut-pid", &pid, "--no-reference", url];
        let launch = Launch {
            what: "a session between two hosts",
            words: self.at_client(&run).into_iter().chain(options.iter().cloned()).collect(),
            cpus: Vec::new(),
            groups: Vec::new(),
            environment: vec![("TARE_STATE_DIR".to_owned(), text(&session.state_dir))],
            output: Output::KeepErrors,
        };
        let mut started = Started::launch(&launch, ground.journal)?;
        let end = until("session", SESSION_WITHIN, ground, || started.has_ended());
        // It ends otherwise than with 0 where its figures are not to be quoted, and has a record all the same.
        let recorded = tare_store::read(&file);
        end?;
        recorded.map_err(|error| LabError::Load {
            what: format!("left no record ({}): {error}", started.exit_description()),
            last_output: started.output(),
        })
    }

    /// What is lost of what comes to the generator, as a rule of nftables. What a host drops of its own output its TCP learns
    /// at once, and takes for not yet sent: no loss, then.
    pub fn drop_before_client(&self, rule: &str) -> Result<(), LabError> {
        let table = format!(
            "add table ip t; add chain ip t in {{ type filter hook prerouting priority 0; }}; add rule ip t in {rule} drop"
        );
        reported(&self.at_client(&["nft", &table]))
    }
}

/// Runs a command to its end.
pub(super) fn reported(words: &[String]) -> Result<(), LabError> {
    let (program, arguments) = words.split_first().map_or(("", words), |(first, rest)| (first, rest));
    let refused = |why: String| LabError::State(format!("'{}' failed: {}", words.join(" "), why.trim()));
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output();
    let output = output.map_err(|error| refused(error.to_string()))?;
    if !output.status.success() {
        return Err(refused(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    Ok(())
}

fn words(words: &[impl AsRef<str>]) -> Vec<String> {
    words.iter().map(|word| word.as_ref().to_owned()).collect()
}

fn within(host: &Started, what: &[impl AsRef<str>]) -> Vec<String> {
    let enter = ["nsenter".to_owned(), format!("--net=/proc/{}/ns/net", host.pid())];
    [enter.as_slice(), &words(what)].concat()
}

/// Somebody who lives in a network namespace of his own.
fn host(ground: &Ground<'_>) -> Result<Started, LabError> {
    let mut host = ground.start("a host", words(&["unshare", "--net", "sleep", "infinity"]), Vec::new())?;
    let namespace = |pid: &str| std::fs::read_link(PathBuf::from("/proc").join(pid).join("ns/net")).ok();
    let (own, pid) = (namespace("self"), host.pid().to_string());
    let elsewhere = || namespace(&pid).is_some_and(|other| Some(other) != own);
    until("a network namespace", BORN_WITHIN, ground, || elsewhere() || host.has_ended())?;
    if host.has_ended() {
        let how = host.exit_description();
        return Err(LabError::State(format!(
            "no network namespace could be made: {} ({how})",
            host.output()
        )));
    }
    Ok(host)
}
