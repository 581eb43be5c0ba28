//! What is sent: compiled before the run, and for requests that never change, bytes built once.

use crate::body_file::{BodyFile, PIECE_BYTES};
use crate::lines::Lines;
use crate::message::{self, Message, MessageError};
use crate::random::Random;
use crate::spec::LoadSpec;
use crate::table::Table;
use crate::template::{self, Names, Piece, Place, Values, push_bytes, write_number};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// Longest run of pipelined constant requests in bytes.
pub(crate) const BATCH_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Recipes whose answers' heads are remembered apart from each other.
const HEADS_MAX: usize = 64;

/// A request whose constant parts are bytes already.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Recipe {
    /// With the body, where that is constant.
    head: Vec<Piece>,
    body: Option<Vec<Piece>>,
    to_head: bool,
}

/// All that requests are made from; threads share it.
#[derive(Debug)]
pub(crate) struct Program {
    recipes: Vec<Recipe>,
    /// Sums of the weights up to each recipe.
    sums: Vec<u64>,
    file: Option<PathBuf>,
    /// What follows each request's head, where that is no part of the recipes.
    upload: Option<Arc<BodyFile>>,
    names: Names,
    common: Common,
}

/// What every request has.
#[derive(Debug)]
struct Common {
    host: String,
    close: bool,
    http2: bool,
}

impl Program {
    /// Compiles what `spec` asks for; reads its files once.
    pub(crate) fn load(spec: &LoadSpec) -> Result<Program, MessageError> {
        message::validate(&spec.route.target, &spec.content.urls, &spec.content.captures)?;
        let table = spec.content.csv_file.as_deref().map(Table::load).transpose()?.map(Arc::new);
        let captures = spec.content.captures.iter().map(|capture| capture.name.clone()).collect();
        let names = Names { templates: spec.content.templates, table, captures };
        let common = Common {
            host: spec.route.target.authority(),
            close: !spec.keep_alive,
            http2: spec.is_multiplexed(),
        };
        // A file of requests has bodies of its own.
        let upload = spec.content.body_file.as_deref().filter(|_| spec.content.request_file.is_none());
        let mut program = Program {
            upload: upload.map(BodyFile::open).transpose()?.map(Arc::new),
            recipes: Vec::new(),
            sums: Vec::new(),
            file: spec.content.request_file.clone(),
            names,
            common,
        };
        let message = |path: &str| Message {
            method: spec.content.method.clone(),
            path: path.to_owned(),
            headers: spec.content.headers.clone(),
            body: if upload.is_some() { Vec::new() } else { spec.content.body.clone() },
        };
        let paths = spec.content.urls.iter().map(|url| (url.target.path(), u64::from(url.weight)));
        let paths: Vec<_> =
            if spec.content.urls.is_empty() { vec![(spec.route.target.path(), 1)] } else { paths.collect() };
        let mut sum = 0;
        for (path, weight) in paths {
            program.recipes.push(program.compile(&message(path))?);
            sum += weight;
            program.sums.push(sum);
        }
        if let Some(file) = &program.file {
            Lines::check(file, |message| {
                program.compile(&message).map(drop).map_err(|error| error.to_string())
            })?;
        }
        Ok(program)
    }

    /// Bytes of the constant request, if that is all there is.
    pub(crate) fn constant(&self) -> Option<&[u8]> {
        match (self.recipes.as_slice(), &self.file) {
            ([Recipe { head, body: None, .. }], None) => match head.as_slice() {
                [Piece::Bytes(bytes)] => Some(bytes),
                _ => None,
            },
            _ => None,
        }
    }

    /// What follows each request's head, where that stays in its file.
    pub(crate) fn upload(&self) -> Option<&Arc<BodyFile>> {
        self.upload.as_ref()
    }

    /// For each memory of heads that answers need: whether its requests are `HEAD`.
    pub(crate) fn heads(&self) -> Vec<bool> {
        match self.file {
            Some(_) => vec![false, true],
            None => self.recipes.iter().take(HEADS_MAX).map(|recipe| recipe.to_head).collect(),
        }
    }

    fn compile(&self, message: &Message) -> Result<Recipe, MessageError> {
        message.check()?;
        if self.common.http2 {
            message.check_http2()?;
        }
        let (names, mut head) = (&self.names, Vec::new());
        push_bytes(&mut head, format!("{} ", message.method).as_bytes());
        template::parse(message.path.as_bytes(), Place::Path, names, &mut head)?;
        push_bytes(&mut head, b" HTTP/1.1\r\n");
        let given = |name: &str| message.headers.iter().any(|(given, _)| given.eq_ignore_ascii_case(name));
        if !given("host") {
            push_bytes(&mut head, format!("Host: {}\r\n", self.common.host).as_bytes());
        }
        for (name, value) in &message.headers {
            push_bytes(&mut head, format!("{name}: ").as_bytes());
            template::parse(value.as_bytes(), Place::Header, names, &mut head)?;
            push_bytes(&mut head, b"\r\n");
        }
        if self.common.close && !given("connection") {
            push_bytes(&mut head, b"Connection: close\r\n");
        }
        let mut body = Vec::new();
        template::parse(&message.body, Place::Body, names, &mut body)?;
        let to_head = message.method == "HEAD";
        if !body.iter().all(|piece| matches!(piece, Piece::Bytes(_))) {
            return Ok(Recipe { head, body: Some(body), to_head });
        }
        let bytes = self.upload.as_ref().map_or(message.body.len() as u64, |upload| upload.bytes());
        if bytes > 0 || matches!(message.method.as_str(), "POST" | "PUT" | "PATCH") {
            push_bytes(&mut head, format!("Content-Length: {bytes}\r\n").as_bytes());
        }
        push_bytes(&mut head, b"\r\n");
        push_bytes(&mut head, &message.body);
        Ok(Recipe { head, body: None, to_head })
    }
}

/// A request that was written: how long it is and which memory of heads its answer needs, in one word, as each request in
/// flight has one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Written(u64);

/// Bits of a [`Written`] for its heads.
const HEADS_BITS: u32 = 8;
const _: () = assert!(HEADS_MAX <= 1 << HEADS_BITS);

impl Written {
    #[inline]
    pub(crate) fn new(bytes: u64, heads: u8) -> Written {
        Written(bytes << HEADS_BITS | u64::from(heads))
    }

    /// Its length in bytes, with its body.
    #[inline]
    pub(crate) fn len(self) -> usize {
        (self.0 >> HEADS_BITS) as usize
    }

    /// What stands for a request that its file no longer has: no other is empty.
    pub(crate) const LACKING: Written = Written(0);

    /// Which memory of heads its answer needs.
    #[inline]
    pub(crate) fn heads(self) -> usize {
        (self.0 & ((1 << HEADS_BITS) - 1)) as usize
    }

    #[inline]
    pub(crate) fn is_lacking(self) -> bool {
        self.len() == 0
    }

    /// With so many bytes behind it.
    fn followed_by(self, bytes: u64) -> Written {
        Written(self.0 + (bytes << HEADS_BITS))
    }
}

/// One thread's requests.
#[derive(Debug)]
pub(crate) enum Requests {
    /// Always the same one, as often in a row as a connection may have in flight, so that any number of them, and the
    /// unsent end of them, is one slice.
    Constant {
        repeated: Vec<u8>,
        len: u32,
    },
    Varying(Box<Varying>),
    Upload(Box<Upload>),
}

/// Requests whose body stays in its file; a connection has one at a time.
#[derive(Debug)]
pub(crate) struct Upload {
    /// Never uploads themselves.
    heads: Requests,
    body: Arc<BodyFile>,
    piece: Vec<u8>,
}

#[derive(Debug)]
pub(crate) struct Varying {
    program: Arc<Program>,
    lines: Option<Lines>,
    /// The next request's number over all threads: each has every nth.
    number: u64,
    threads: u64,
    random: Random,
    body: Vec<u8>,
}

impl Requests {
    /// The part of thread `thread`; `spec` has been validated, `program` is its own.
    pub(crate) fn new(spec: &LoadSpec, program: &Arc<Program>, thread: u32) -> Result<Self, MessageError> {
        let heads = Requests::held(spec, program, thread)?;
        Ok(match program.upload() {
            None => heads,
            Some(body) => Requests::Upload(Box::new(Upload {
                heads,
                body: Arc::clone(body),
                piece: vec![0; PIECE_BYTES],
            })),
        })
    }

    /// All of them but what stays in a file.
    fn held(spec: &LoadSpec, program: &Arc<Program>, thread: u32) -> Result<Self, MessageError> {
        if let Some(one) = program.constant() {
            return Ok(Requests::Constant {
                len: one.len() as u32,
                repeated: one.repeat(spec.depth() as usize),
            });
        }
        let lines = program
            .file
            .as_deref()
            .map(|path| Lines::open(path, (thread, spec.workers.threads)))
            .transpose()?;
        Ok(Requests::Varying(Box::new(Varying {
            program: Arc::clone(program),
            lines,
            number: u64::from(thread),
            threads: u64::from(spec.workers.threads),
            // Not the numbers that the arrivals are made from.
            random: Random::new(spec.seed ^ 0x7465_6d70_6c61_7465, thread),
            body: Vec::new(),
        })))
    }

    /// Writes the next request to the end of `out`, unless it is the constant one or [lacking](Written::LACKING).
    #[inline]
    pub(crate) fn write(&mut self, out: &mut Vec<u8>, captured: &[Vec<u8>]) -> Written {
        match self {
            Requests::Constant { len, .. } => Written::new(u64::from(*len), 0),
            Requests::Varying(varying) => varying.write(out, captured),
            Requests::Upload(upload) => upload.heads.write(out, captured).followed_by(upload.body.bytes()),
        }
    }

    /// Length of each request, where all are the same one.
    pub(crate) fn constant_bytes(&self) -> Option<u32> {
        match self {
            Requests::Constant { len, .. } => Some(*len),
            Requests::Varying(_) | Requests::Upload(_) => None,
        }
    }

    /// What is to be sent next of the last `unsent` of the `outstanding` bytes in flight on a connection that wrote to
    /// `out`; not all of it where it stays in a file, which may have become shorter.
    #[inline]
    pub(crate) fn tail<'a>(
        &'a mut self,
        out: &'a [u8],
        (outstanding, unsent): (usize, usize),
    ) -> io::Result<&'a [u8]> {
        match self {
            Requests::Constant { repeated, .. } => Ok(last(repeated, unsent)),
            Requests::Varying(_) => Ok(last(out, unsent)),
            Requests::Upload(upload) => upload.tail(out, outstanding, unsent),
        }
    }

    /// What follows each request's head, where that stays in its file.
    #[cfg(feature = "http2")]
    pub(crate) fn upload(&self) -> Option<Arc<BodyFile>> {
        match self {
            Requests::Constant { .. } | Requests::Varying(_) => None,
            Requests::Upload(upload) => Some(Arc::clone(&upload.body)),
        }
    }

    /// Whether they come from a file, which may lack the next one.
    #[inline]
    pub(crate) fn are_lines(&self) -> bool {
        matches!(self, Requests::Varying(varying) if varying.lines.is_some())
    }

    /// Whether bodies stay in their file.
    #[inline]
    pub(crate) fn are_uploads(&self) -> bool {
        matches!(self, Requests::Upload(_))
    }
}

#[inline]
fn last(bytes: &[u8], count: usize) -> &[u8] {
    &bytes[bytes.len() - count.min(bytes.len())..]
}

impl Upload {
    fn tail<'a>(&'a mut self, out: &'a [u8], outstanding: usize, unsent: usize) -> io::Result<&'a [u8]> {
        let head = match &self.heads {
            Requests::Constant { repeated, .. } => repeated.as_slice(),
            Requests::Varying(_) | Requests::Upload(_) => out,
        };
        let sent = outstanding.saturating_sub(unsent);
        match sent.checked_sub(head.len()) {
            _ if unsent == 0 => Ok(&[]),
            None => Ok(&head[sent..]),
            Some(at) => self.body.piece(at as u64, &mut self.piece),
        }
    }
}

impl Varying {
    fn write(&mut self, out: &mut Vec<u8>, captured: &[Vec<u8>]) -> Written {
        let program = &self.program;
        let begin = out.len();
        let (line, chosen) = match &mut self.lines {
            None => (None, self.choose()),
            // Nothing that was not asked for is sent instead.
            Some(lines) => match lines.next().and_then(|message| program.compile(&message).ok()) {
                Some(line) => (Some(line), 0),
                None => return Written::LACKING,
            },
        };
        let recipe = line.as_ref().unwrap_or_else(|| &program.recipes[chosen]);
        let mut values = Values {
            number: self.number,
            random: &mut self.random,
            table: program.names.table.as_deref(),
            captured,
        };
        template::render(&recipe.head, &mut values, out);
        if let Some(body) = &recipe.body {
            self.body.clear();
            template::render(body, &mut values, &mut self.body);
            out.extend_from_slice(b"Content-Length: ");
            write_number(out, self.body.len() as u64);
            out.extend_from_slice(b"\r\n\r\n");
            out.extend_from_slice(&self.body);
        }
        self.number += self.threads;
        let heads = if program.file.is_some() { usize::from(recipe.to_head) } else { chosen % HEADS_MAX };
        Written::new((out.len() - begin) as u64, heads as u8)
    }

    /// Which recipe is next: multiples of the golden ratio fall evenly, and so into each share as its weight says.
    fn choose(&self) -> usize {
        let sums = &self.program.sums;
        let turn = self.number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let at = (u128::from(turn) * u128::from(sums[sums.len() - 1])) >> 64;
        sums.partition_point(|&sum| u128::from(sum) <= at)
    }
}

/// One request as it is sent first.
#[derive(Debug)]
pub(crate) struct First {
    /// All that does not stay in a file.
    pub(crate) bytes: Vec<u8>,
    pub(crate) upload: Option<Arc<BodyFile>>,
}

impl First {
    pub(crate) fn of(spec: &LoadSpec) -> Result<First, MessageError> {
        let program = Arc::new(Program::load(spec)?);
        let mut requests = Requests::held(spec, &program, 0)?;
        let (mut out, empty) = (Vec::new(), vec![Vec::new(); spec.content.captures.len()]);
        if requests.write(&mut out, &empty).is_lacking() {
            let path = program.file.clone().unwrap_or_default();
            return Err(MessageError::File { path, why: "no request stands in it any more".to_owned() });
        }
        let bytes = if let Requests::Constant { repeated, len } = requests {
            repeated[..len as usize].to_vec()
        } else {
            out
        };
        Ok(First { bytes, upload: program.upload().cloned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::WeightedUrl;
    use crate::target::Target;

    fn spec() -> LoadSpec {
        LoadSpec::new(Target::parse("http://h:81/p?q").unwrap())
    }

    fn text(spec: &LoadSpec) -> String {
        String::from_utf8(First::of(spec).unwrap().bytes).unwrap()
    }

    #[test]
    fn what_is_sent() {
        let mut spec = spec();
        assert_eq!(text(&spec), "GET /p?q HTTP/1.1\r\nHost: h:81\r\n\r\n");
        spec.keep_alive = false;
        assert_eq!(text(&spec), "GET /p?q HTTP/1.1\r\nHost: h:81\r\nConnection: close\r\n\r\n");
        spec.keep_alive = true;
        spec.content.method = "POST".to_owned();
        spec.content.headers =
            vec![("HOST".to_owned(), "other".to_owned()), ("X".to_owned(), "1".to_owned())];
        assert_eq!(text(&spec), "POST /p?q HTTP/1.1\r\nHOST: other\r\nX: 1\r\nContent-Length: 0\r\n\r\n");
        spec.content.body = b"{{hex:3}}".to_vec();
        assert!(text(&spec).ends_with("Content-Length: 9\r\n\r\n{{hex:3}}"), "not asked for");
        spec.content.templates = true;
        let made = text(&spec);
        assert!(made.contains("\r\nContent-Length: 3\r\n\r\n") && made.len() == text(&spec).len(), "{made}");
    }

    #[test]
    fn constant_requests_are_one_slice() {
        let mut spec = spec();
        spec.pipeline = 2;
        let mut requests = Requests::new(&spec, &Arc::new(Program::load(&spec).unwrap()), 0).unwrap();
        let len = requests.write(&mut Vec::new(), &[]).len();
        let mut tail = |unsent| requests.tail(&[], (2 * len, unsent)).unwrap().to_vec();
        assert_eq!(tail(3), b"\n\r\n");
        assert_eq!(tail(len), First::of(&spec).unwrap().bytes);
        assert_eq!(tail(1000).len(), 2 * len);
    }

    #[test]
    fn an_upload_is_its_head_and_then_its_file() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let body: Vec<u8> = (0..2 * PIECE_BYTES + 5).map(|k| (k / 7) as u8).collect();
        std::fs::write(file.path(), &body).unwrap();
        for paths in [vec!["/a"], vec!["/a", "/bb"]] {
            let mut spec = spec();
            let url = |path: &&str| WeightedUrl {
                target: Target::parse(&format!("http://h:81{path}")).unwrap(),
                weight: 1,
            };
            (spec.content.urls, spec.content.method) = (paths.iter().map(url).collect(), "PUT".to_owned());
            spec.content.body_file = Some(file.path().to_path_buf());
            let program = Arc::new(Program::load(&spec).unwrap());
            let mut requests = Requests::new(&spec, &program, 0).unwrap();
            for path in paths.iter().chain(&paths) {
                let mut out = Vec::new();
                let len = requests.write(&mut out, &[]).len();
                let (mut sent, mut pieces) = (Vec::new(), 0);
                while sent.len() < len {
                    let piece = requests.tail(&out, (len, len - sent.len())).unwrap();
                    // A socket takes what it likes.
                    sent.extend_from_slice(&piece[..piece.len().min(40_000)]);
                    pieces += 1;
                }
                assert!(requests.tail(&out, (len, 0)).unwrap().is_empty() && pieces >= 5);
                let head =
                    format!("PUT {path} HTTP/1.1\r\nHost: h:81\r\nContent-Length: {}\r\n\r\n", body.len());
                assert!(sent.starts_with(head.as_bytes()) && sent[head.len()..] == body, "{path}");
            }
            assert!(requests.are_uploads() && requests.constant_bytes().is_none());
        }
    }

    #[test]
    fn a_written_request_is_one_word() {
        let written = Written::new(5, 63).followed_by(1 << 40);
        assert_eq!((written.len(), written.heads(), size_of::<Written>()), ((1 << 40) + 5, 63, 8));
    }

    #[test]
    fn urls_get_their_shares_and_threads_every_nth_request() {
        let mut spec = spec();
        let url = |path: &str, weight| WeightedUrl {
            target: Target::parse(&format!("http://h:81{path}")).unwrap(),
            weight,
        };
        (spec.content.urls, spec.workers.threads, spec.connections) =
            (vec![url("/a", 3), url("/b?{{counter}}", 1)], 2, 2);
        spec.content.templates = true;
        let program = Arc::new(Program::load(&spec).unwrap());
        let (mut count, mut numbers) = ([0, 0], Vec::new());
        for thread in 0..2 {
            let mut requests = Requests::new(&spec, &program, thread).unwrap();
            for _ in 0..2000 {
                let mut out = Vec::new();
                let written = requests.write(&mut out, &[]);
                assert_eq!(written.len(), out.len());
                count[written.heads()] += 1;
                let out = String::from_utf8(out).unwrap();
                let number = out
                    .split_once('?')
                    .and_then(|(_, rest)| rest.split(' ').next().map(|n| n.parse::<u64>()));
                numbers.extend(number.map(Result::unwrap));
            }
        }
        assert!((995..=1005).contains(&count[1]), "{count:?}");
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), count[1], "no number twice");
    }
}
