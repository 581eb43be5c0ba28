//! The load generators: how each is asked for a load, and where its summary says how many requests were answered.

use crate::load::{Load, Serves};

/// Seconds of load in a trial: wrk and ab take whole ones only.
pub const SECONDS: u32 = 1;

/// One generator, or one way to run it.
pub struct Generator {
    pub name: &'static str,
    /// The program, looked for in the folder of other generators and in PATH.
    pub program: &'static str,
    pub version: &'static [&'static str],
    /// Its arguments; the script is a file with wrk's pipelining.
    pub arguments: fn(load: &Load, url: &str, script: &str) -> Vec<String>,
    /// Whether it takes a connection for closed unless the answer says that it is not.
    pub wants_keep_alive: bool,
    /// Answered requests in what it printed.
    pub requests: fn(&str) -> Option<f64>,
}

const TARE: Generator = Generator {
    name: "tare",
    program: "tare",
    version: &["--version"],
    arguments: |load, url, _| tare(load, url, &[]),
    wants_keep_alive: false,
    requests: |text| json_number(text, "/requests/count"),
};

pub const GENERATORS: &[Generator] = &[
    TARE,
    Generator {
        name: "tare epoll",
        arguments: |load, url, _| tare(load, url, &["--engine", "epoll"]),
        ..TARE
    },
    Generator {
        name: "tare io_uring",
        arguments: |load, url, _| tare(load, url, &["--engine", "io-uring"]),
        ..TARE
    },
    Generator {
        name: "bare",
        program: "bare",
        version: &["--version"],
        arguments: |load, url, _| words(&format!("{} {} {SECONDS} {url}", load.connections, load.depth)),
        wants_keep_alive: false,
        requests: |text| word_before(text, " requests in "),
    },
    Generator {
        name: "wrk",
        program: "wrk",
        version: &["-v"],
        arguments: wrk,
        wants_keep_alive: false,
        requests: |text| word_before(text, " requests in "),
    },
    Generator {
        name: "ab",
        program: "ab",
        version: &["-V"],
        // -t alone ends after 50,000 requests.
        arguments: |load, url, _| {
            let keep = if load.server == Serves::OneEach { "" } else { " -k" };
            words(&format!("-q{keep} -t {SECONDS} -n 1000000 -c {} {url}", load.connections))
        },
        wants_keep_alive: true,
        requests: |text| word_after(text, "Complete requests:"),
    },
    Generator {
        name: "h2load",
        program: "h2load",
        version: &["--version"],
        arguments: |load, url, _| {
            words(&format!("--h1 -t 1 -D {SECONDS} -c {} -m {} {url}", load.connections, load.depth))
        },
        wants_keep_alive: false,
        requests: |text| word_before(text, " succeeded,"),
    },
    Generator {
        name: "bombardier",
        program: "bombardier",
        version: &["--version"],
        arguments: |load, url, _| {
            words(&format!("-c {} -d {SECONDS}s -o json -p result {url}", load.connections))
        },
        wants_keep_alive: false,
        requests: |text| json_number(text, "/result/req2xx"),
    },
    Generator {
        name: "oha",
        program: "oha",
        version: &["--version"],
        arguments: |load, url, _| {
            words(&format!("--no-tui --output-format json -z {SECONDS}s -c {} {url}", load.connections))
        },
        wants_keep_alive: false,
        requests: |text| json_number(text, "/statusCodeDistribution/200"),
    },
];

fn words(line: &str) -> Vec<String> {
    line.split(' ').map(str::to_owned).collect()
}

fn tare(load: &Load, url: &str, more: &[&str]) -> Vec<String> {
    let mut line =
        words(&format!("load --json -q -t 1 -c {} -d {SECONDS} --pipeline {}", load.connections, load.depth));
    line.extend(more.iter().map(|word| (*word).to_owned()));
    if load.server == Serves::OneEach {
        line.push("--no-keepalive".to_owned());
    }
    line.push(url.to_owned());
    line
}

fn wrk(load: &Load, url: &str, script: &str) -> Vec<String> {
    let mut line = words(&format!("-t 1 -c {} -d {SECONDS}", load.connections));
    if load.depth > 1 {
        line.extend(["-s".to_owned(), script.to_owned()]);
    }
    line.push(url.to_owned());
    if load.depth > 1 {
        line.extend(["--".to_owned(), load.depth.to_string()]);
    }
    line
}

/// wrk's own example of pipelining, with the depth as its argument.
pub const WRK_PIPELINE: &str = "init = function(args)
  local requests = {}
  for i = 1, tonumber(args[1]) do requests[i] = wrk.format() end
  pipeline = table.concat(requests)
end
request = function() return pipeline end
";

fn json_number(text: &str, pointer: &str) -> Option<f64> {
    let value: serde_json::Value = serde_json::from_str(text.get(text.find('{')?..)?).ok()?;
    value.pointer(pointer)?.as_f64()
}

fn word_before(text: &str, mark: &str) -> Option<f64> {
    text[..text.find(mark)?].split_whitespace().next_back()?.parse().ok()
}

fn word_after(text: &str, mark: &str) -> Option<f64> {
    text[text.find(mark)? + mark.len()..].split_whitespace().next()?.parse().ok()
}
