//! Files, ranges and conditional requests, byte for byte as nginx answers them.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::symlink;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::common::{Running, config, start, until};
use tare_server::{Server, ServerError};
use tempfile::TempDir;

fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("sub")).unwrap();
    fs::write(at("index.html"), "<p>root").unwrap();
    fs::write(at("sub/index.html"), "<p>sub").unwrap();
    fs::write(at("small.txt"), "0123456789").unwrap();
    fs::write(at("empty.txt"), "").unwrap();
    let big: Vec<u8> = (0..3_000_000u32).map(|i| (i % 251) as u8).collect();
    fs::write(at("big.bin"), big).unwrap();
    fs::write(at("style.css"), "plain").unwrap();
    fs::write(at("style.css.gz"), "gzipped").unwrap();
    fs::write(at("style.css.br"), "brotli").unwrap();
    // Of whole seconds, as nginx takes all times: then entity tags are the same.
    for name in ["index.html", "sub/index.html", "small.txt", "empty.txt", "big.bin", "style.css"] {
        let modified = std::time::UNIX_EPOCH + Duration::from_secs(1_790_000_000);
        fs::File::options().append(true).open(at(name)).unwrap().set_modified(modified).unwrap();
    }
    symlink("/etc/passwd", at("out")).unwrap();
    symlink("small.txt", at("within")).unwrap();
    folder
}

fn serve(folder: &TempDir) -> Running {
    start(Server::builder().files(folder.path()).unwrap(), config())
}

struct Reply {
    status: u16,
    fields: Vec<String>,
    body: Vec<u8>,
}

impl Reply {
    fn field(&self, name: &str) -> Option<&str> {
        let of_name = |f: &&String| f.split(':').next().is_some_and(|n| n.eq_ignore_ascii_case(name));
        self.fields.iter().find(of_name).map(|f| f[name.len() + 1..].trim())
    }
}

impl Reply {
    /// Boundaries are made up anew for each answer: 20 digits in both servers.
    fn hide_boundary(&mut self) {
        let Some(boundary) = self.field("content-type").and_then(|t| t.split_once("boundary=")) else {
            return;
        };
        let boundary = boundary.1.to_owned();
        assert!(boundary.len() == 20, "{boundary}");
        let hidden = "B".repeat(boundary.len());
        self.fields.iter_mut().for_each(|field| *field = field.replace(&boundary, &hidden));
        let body = String::from_utf8_lossy(&self.body).replace(&boundary, &hidden);
        self.body = body.into_bytes();
    }
}

fn ask(mut stream: TcpStream, method: &str, path: &str, fields: &str) -> Reply {
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    write!(stream, "{method} {path} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n{fields}\r\n").unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    let end = bytes.windows(4).position(|w| w == b"\r\n\r\n").unwrap();
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    let mut lines = head.lines();
    let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    Reply { status, fields: lines.map(str::to_owned).collect(), body: bytes[end + 4..].to_vec() }
}

#[test]
fn files_folders_and_types_are_found() {
    let folder = folder();
    let server = serve(&folder);
    let get = |path: &str| ask(server.connect(), "GET", path, "");
    let cases = [
        ("/", 200, "<p>root", "text/html"),
        ("/sub/", 200, "<p>sub", "text/html"),
        ("/small.txt", 200, "0123456789", "text/plain"),
        ("/%73mall%2Etxt?query", 200, "0123456789", "text/plain"),
        ("/within", 200, "0123456789", "application/octet-stream"),
        ("/empty.txt", 200, "", "text/plain"),
    ];
    for (path, status, body, media_type) in cases {
        let reply = get(path);
        assert_eq!((reply.status, reply.body.as_slice()), (status, body.as_bytes()), "{path}");
        assert_eq!(reply.field("content-type"), Some(media_type), "{path}");
    }
    let moved = get("/sub?a=b");
    assert_eq!((moved.status, moved.field("location")), (301, Some("/sub/?a=b")));
    let head = ask(server.connect(), "HEAD", "/big.bin", "");
    assert_eq!((head.status, head.field("content-length"), head.body.len()), (200, Some("3000000"), 0));
    assert_eq!(ask(server.connect(), "POST", "/small.txt", "Content-Length: 0\r\n").status, 405);
}

#[test]
fn there_is_no_way_out_of_the_folder() {
    let folder = folder();
    let server = serve(&folder);
    for path in [
        "/../../../../etc/passwd",
        "/%2e%2e/%2e%2e/%2e%2e/%2e%2e/etc/passwd",
        "/sub/../../etc/passwd",
        "//etc/passwd",
        "/%2fetc/passwd",
        "/out",
        "/sub%00/index.html",
        "/small.txt/",
        "/small.txt/x",
        "/none",
    ] {
        assert_eq!(ask(server.connect(), "GET", path, "").status, 404, "{path}");
    }
}

#[test]
fn precompressed_forms_go_to_who_takes_them() {
    let folder = folder();
    let server = serve(&folder);
    let get =
        |accept: &str| ask(server.connect(), "GET", "/style.css", &format!("Accept-Encoding: {accept}\r\n"));
    for (accept, body, coding) in [
        ("gzip, br", "brotli", Some("br")),
        ("gzip", "gzipped", Some("gzip")),
        ("br;q=0, gzip;q=0.5", "gzipped", Some("gzip")),
        ("gzip;q=0, br;q=0.0", "plain", None),
        ("identity", "plain", None),
    ] {
        let reply = get(accept);
        assert_eq!(
            (reply.body.as_slice(), reply.field("content-encoding")),
            (body.as_bytes(), coding),
            "{accept}"
        );
        assert_eq!(reply.field("vary"), Some("Accept-Encoding"), "{accept}");
        assert_eq!(reply.field("content-type"), Some("text/css"), "{accept}");
    }
}

#[test]
fn a_client_that_refuses_the_file_as_it_is_gets_another_form_or_none() {
    let folder = folder();
    let server = serve(&folder);
    for (path, accept, status, body) in [
        ("/style.css", "identity;q=0", 406, "Not Acceptable"),
        ("/style.css", "identity;q=0, gzip;q=0.1", 200, "gzipped"),
        ("/small.txt", "gzip, *;q=0", 406, "Not Acceptable"),
        ("/small.txt", "gzip, *;q=0, identity;q=0.1", 200, "0123456789"),
        ("/small.txt", "gzip;q=0", 200, "0123456789"),
        ("/none.txt", "identity;q=0", 404, "Not Found"),
    ] {
        let reply = ask(server.connect(), "GET", path, &format!("Accept-Encoding: {accept}\r\n"));
        assert_eq!((reply.status, reply.body.as_slice()), (status, body.as_bytes()), "{path} {accept}");
        let vary = (status != 404).then_some("Accept-Encoding");
        assert_eq!(reply.field("vary"), vary, "{path} {accept}");
    }
}

#[test]
fn a_file_of_which_only_another_form_is_there_is_missing_for_some() {
    let folder = folder();
    std::fs::write(folder.path().join("only.txt.gz"), "gzipped").unwrap();
    let server = serve(&folder);
    for (accept, status) in [("gzip", 200), ("identity", 404)] {
        let reply = ask(server.connect(), "GET", "/only.txt", &format!("Accept-Encoding: {accept}\r\n"));
        assert_eq!((reply.status, reply.field("vary")), (status, Some("Accept-Encoding")), "{accept}");
    }
}

#[test]
fn ranges_that_nginx_refuses_and_the_rules_allow_are_answered() {
    let folder = folder();
    let server = serve(&folder);
    // RFC 9110, 5.6.1.2 and 14.1.2.
    for (range, body) in [
        ("1-2,", "12"),
        (",1-2", "12"),
        ("1-2, ,", "12"),
        ("1-99999999999999999999", "123456789"),
        ("-99999999999999999999", "0123456789"),
    ] {
        let reply = ask(server.connect(), "GET", "/small.txt", &format!("Range: bytes={range}\r\n"));
        assert_eq!((reply.status, reply.body.as_slice()), (206, body.as_bytes()), "{range}");
    }
}

#[test]
fn every_form_of_answer_says_to_caches_what_it_depends_on() {
    let folder = folder();
    let server = serve(&folder);
    for coding in ["", "Accept-Encoding: br\r\n"] {
        let tag = ask(server.connect(), "GET", "/style.css", coding).field("etag").unwrap().to_owned();
        for (method, fields, status) in [
            ("GET", String::new(), 200),
            ("HEAD", String::new(), 200),
            ("GET", format!("If-None-Match: {tag}\r\n"), 304),
            ("HEAD", format!("If-None-Match: {tag}\r\n"), 304),
            ("GET", "Range: bytes=0-1\r\n".to_owned(), 206),
            ("GET", "Range: bytes=0-0,2-2\r\n".to_owned(), 206),
        ] {
            let reply = ask(server.connect(), method, "/style.css", &format!("{coding}{fields}"));
            let said = (reply.status, reply.field("vary"), reply.field("etag"));
            assert_eq!(
                said,
                (status, Some("Accept-Encoding"), Some(tag.as_str())),
                "{method} {coding}{fields}"
            );
        }
    }
}

#[test]
fn two_forms_of_a_file_have_two_tags_even_of_one_size_and_time() {
    let folder = folder();
    let modified = std::time::UNIX_EPOCH + Duration::from_secs(1_790_000_000);
    for (name, text) in [("form.txt", "plain"), ("form.txt.gz", "gzip."), ("form.txt.br", "brotl")] {
        fs::write(folder.path().join(name), text).unwrap();
        let file = fs::File::options().append(true).open(folder.path().join(name)).unwrap();
        file.set_modified(modified).unwrap();
    }
    let server = serve(&folder);
    let tag = |accept: &str| {
        let reply = ask(server.connect(), "GET", "/form.txt", &format!("Accept-Encoding: {accept}\r\n"));
        reply.field("etag").unwrap().to_owned()
    };
    let tags = ["identity", "gzip", "br"].map(tag);
    assert_eq!(tags, ["\"6ab13b80-5\"", "\"6ab13b80-5-gzip\"", "\"6ab13b80-5-br\""]);
    // A range of one form is not put together with a range of another.
    let fields = format!("Accept-Encoding: gzip\r\nIf-Range: {}\r\nRange: bytes=1-2\r\n", tags[0]);
    assert_eq!(ask(server.connect(), "GET", "/form.txt", &fields).status, 200);
}

#[test]
fn tags_are_compared_weakly_or_strongly_as_the_condition_says() {
    let folder = folder();
    let server = serve(&folder);
    let tag = ask(server.connect(), "GET", "/small.txt", "").field("etag").unwrap().to_owned();
    for (fields, status) in [
        (format!("If-None-Match: W/{tag}\r\n"), 304),
        (format!("If-None-Match: \"a\", W/\"b\" , {tag}\r\n"), 304),
        (format!("If-None-Match: \"a\"\r\nIf-None-Match: {tag}\r\n"), 304),
        ("If-None-Match: *\r\n".to_owned(), 304),
        ("If-None-Match: W/*\r\n".to_owned(), 200),
        ("If-None-Match: \"a, *, b\"\r\n".to_owned(), 200),
        (format!("If-None-Match: w/{tag}\r\n"), 200),
        (format!("If-None-Match: {}\r\n", tag.trim_matches('"')), 200),
        (format!("If-Match: {tag}\r\n"), 200),
        ("If-Match: *\r\n".to_owned(), 200),
        (format!("If-Match: W/{tag}\r\n"), 412),
        ("If-Match: \"a, *, b\"\r\n".to_owned(), 412),
        (format!("If-Match: \"a\", {tag}\r\n"), 200),
        (format!("If-Range: {tag}\r\nRange: bytes=0-0\r\n"), 206),
        (format!("If-Range: W/{tag}\r\nRange: bytes=0-0\r\n"), 200),
        ("If-Range: *\r\nRange: bytes=0-0\r\n".to_owned(), 200),
    ] {
        assert_eq!(ask(server.connect(), "GET", "/small.txt", &fields).status, status, "{fields:?}");
    }
}

#[test]
fn a_precompressed_form_of_any_file_says_so_to_caches() {
    let folder = folder();
    fs::write(folder.path().join("all.tar"), "plain").unwrap();
    fs::write(folder.path().join("all.tar.gz"), "gzipped").unwrap();
    let server = serve(&folder);
    let reply = ask(server.connect(), "GET", "/all.tar", "Accept-Encoding: gzip\r\n");
    assert_eq!((reply.body.as_slice(), reply.field("content-encoding")), (&b"gzipped"[..], Some("gzip")));
    assert_eq!(reply.field("vary"), Some("Accept-Encoding"));
}

#[test]
fn a_file_as_it_is_says_to_caches_that_there_may_be_another_form() {
    let folder = folder();
    fs::write(folder.path().join("all.tar"), "plain").unwrap();
    let server = serve(&folder);
    for path in ["/all.tar", "/small.txt"] {
        let reply = ask(server.connect(), "GET", path, "");
        assert_eq!(
            (reply.field("content-encoding"), reply.field("vary")),
            (None, Some("Accept-Encoding")),
            "{path}"
        );
    }
}

#[test]
fn two_states_of_a_file_within_one_second_have_two_tags() {
    let folder = folder();
    let server = serve(&folder);
    let tag_of = |ns: u32| {
        let modified = std::time::UNIX_EPOCH + Duration::new(1_790_000_000, ns);
        let file = fs::File::options().append(true).open(folder.path().join("small.txt")).unwrap();
        file.set_modified(modified).unwrap();
        ask(server.connect(), "GET", "/small.txt", "").field("etag").unwrap().to_owned()
    };
    let tags = [0, 1_000, 2_000].map(tag_of);
    assert_eq!(tags, ["\"6ab13b80-a\"", "\"6ab13b80.3e8-a\"", "\"6ab13b80.7d0-a\""]);
}

#[test]
fn a_folder_that_takes_the_place_of_the_old_one_is_served() {
    let around = tempfile::tempdir().unwrap();
    let at = |name: &str| around.path().join(name);
    for name in ["one", "two"] {
        fs::create_dir(at(name)).unwrap();
        fs::write(at(name).join("which"), name).unwrap();
    }
    symlink("one", at("current")).unwrap();
    let server = start(Server::builder().files(&at("current")).unwrap(), config());
    let which = || String::from_utf8(ask(server.connect(), "GET", "/which", "").body).unwrap();
    assert_eq!(which(), "one");
    symlink("two", at("next")).unwrap();
    fs::rename(at("next"), at("current")).unwrap();
    until("the new folder is served", || which() == "two");
    // Moved away, and nothing in its place: the same files as before.
    fs::rename(at("current"), at("gone")).unwrap();
    std::thread::sleep(Duration::from_millis(1_100));
    assert_eq!(which(), "two");
}

/// As a release does that moves the folder itself, or what it stands in.
#[test]
fn a_folder_that_is_renamed_is_served_on_until_another_takes_its_place() {
    let around = tempfile::tempdir().unwrap();
    let at = |name: &str| around.path().join(name);
    fs::create_dir_all(at("site/www")).unwrap();
    fs::write(at("site/www/which"), "old").unwrap();
    let server = start(Server::builder().files(&at("site/www")).unwrap(), config());
    let get = |path: &str| {
        let reply = ask(server.connect(), "GET", path, "");
        (reply.status, String::from_utf8(reply.body).unwrap())
    };
    let old = (200, "old".to_owned());
    assert_eq!(get("/which"), old);
    // What follows looks at the path again: it does so once a second.
    let next_second = || std::thread::sleep(Duration::from_millis(1_100));
    fs::rename(at("site/www"), at("site/www.old")).unwrap();
    assert_eq!(get("/which"), old);
    next_second();
    assert_eq!(get("/which"), old);
    // It is the folder that is followed, not a copy of what was in it.
    fs::write(at("site/www.old/new"), "also new").unwrap();
    assert_eq!(get("/new"), (200, "also new".to_owned()));
    fs::rename(at("site"), at("moved")).unwrap();
    next_second();
    assert_eq!(get("/which"), old);
    // A file in its place is no folder.
    fs::create_dir(at("site")).unwrap();
    fs::write(at("site/www"), "a file").unwrap();
    next_second();
    assert_eq!(get("/which"), old);
    fs::remove_file(at("site/www")).unwrap();
    fs::create_dir(at("site/www")).unwrap();
    fs::write(at("site/www/which"), "next").unwrap();
    until("the folder in its place is served", || get("/which") == (200, "next".to_owned()));
    assert_eq!(get("/new").0, 404);
}

#[test]
fn a_file_from_the_future_was_modified_no_later_than_now() {
    let folder = folder();
    let future = std::time::SystemTime::now() + Duration::from_secs(1_000_000);
    fs::File::open(folder.path().join("small.txt")).unwrap().set_modified(future).unwrap();
    let reply = ask(serve(&folder).connect(), "GET", "/small.txt", "");
    assert!(reply.field("last-modified").is_some());
    assert_eq!(reply.field("last-modified"), reply.field("date"));
}

#[test]
fn a_folder_that_is_none_is_refused() {
    let error = Server::builder().files(std::path::Path::new("/etc/passwd")).err().unwrap();
    assert!(matches!(error, ServerError::Folder { .. }) && error.to_string().contains("hint:"));
}

struct Nginx {
    child: Child,
    port: u16,
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// nginx in one process, on a port that was free a moment ago.
fn nginx(root: &TempDir, own: &TempDir) -> Nginx {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let text = format!(
        "daemon off; master_process off; user root; pid {own}/pid; error_log /dev/null;\n\
         events {{}}\n\
         http {{ access_log off; client_body_temp_path {own}; proxy_temp_path {own}; fastcgi_temp_path {own};\n\
         uwsgi_temp_path {own}; scgi_temp_path {own}; if_modified_since before; max_ranges 64;\n\
         types {{ text/plain txt; text/html html; }} default_type application/octet-stream; server {{ listen 127.0.0.1:{port}; root {root}; }} }}\n",
        own = own.path().display(),
        root = root.path().display(),
    );
    let file = own.path().join("nginx.conf");
    fs::write(&file, text).unwrap();
    let child =
        Command::new("nginx").arg("-c").arg(file).stderr(Stdio::null()).spawn().expect("nginx is there");
    until("nginx listens", || TcpStream::connect(("127.0.0.1", port)).is_ok());
    Nginx { child, port }
}

/// A writer of a pipe waits until a reader has opened it.
#[test]
fn a_pipe_is_not_even_opened() {
    let folder = folder();
    let pipes = ["pipe", "style.css.br.br", "small.txt.gz"].map(|name| folder.path().join(name));
    assert!(Command::new("mkfifo").args(&pipes).status().unwrap().success());
    symlink("pipe", folder.path().join("to-pipe")).unwrap();
    let (sender, receiver) = std::sync::mpsc::channel();
    for pipe in pipes.clone() {
        let sender = sender.clone();
        std::thread::spawn(move || {
            let open = fs::OpenOptions::new().write(true).open(pipe);
            sender.send(()).unwrap();
            drop(open);
        });
    }
    let server = serve(&folder);
    for path in ["/pipe", "/to-pipe", "/pipe/", "/style.css.br.br"] {
        assert_eq!(ask(server.connect(), "GET", path, "").status, 404, "{path}");
    }
    let plain = ask(server.connect(), "GET", "/small.txt", "Accept-Encoding: gzip, br\r\n");
    assert_eq!((plain.status, plain.body.as_slice()), (200, &b"0123456789"[..]));
    assert!(receiver.recv_timeout(Duration::from_millis(200)).is_err(), "a writer was woken");
    // For an end of the threads.
    for pipe in pipes {
        fs::File::open(pipe).unwrap();
        receiver.recv_timeout(Duration::from_secs(20)).unwrap();
    }
}

#[test]
fn ranges_and_conditions_are_answered_as_nginx_does() {
    let (folder, own) = (folder(), tempfile::tempdir().unwrap());
    let (server, nginx) = (serve(&folder), nginx(&folder, &own));
    let plain = ask(server.connect(), "GET", "/small.txt", "");
    let (etag, date) = (plain.field("etag").unwrap(), plain.field("last-modified").unwrap());
    let mut fields = vec![String::new()];
    let many = |n: u32| (0..n).map(|i| format!("{i}-{i}")).collect::<Vec<_>>().join(",");
    let (most, too_many) = (many(64), many(65));
    let ranges = [
        "0-0",
        "2-4",
        "5-",
        "-3",
        "0-9",
        "0-100",
        "9-9",
        "10-",
        "-0",
        "-100",
        "100-200",
        "3-2",
        "1-1",
        "0-",
        "a-b",
        "1",
        "-",
        "",
        "1-2-3",
        "+1-2",
        " 2 - 4 ",
        "99999999999999999999-",
        "1-2,4-5",
        "1-2, 4-5",
        "4-5,1-2",
        "1-2,a-b",
        "1-2,100-200",
        "-1,0-0",
        "0-5,5-9",
        "0-4,5-9",
        "0-0,0-0",
        "100-200,300-",
        "5-,100-",
        &most,
        &too_many,
    ];
    fields.extend(ranges.iter().map(|range| format!("Range: bytes={range}\r\n")));
    fields
        .extend(["Range: BYTES=1-2\r\n", "Range: lines=1-2\r\n", "Range: bytes 1-2\r\n"].map(str::to_owned));
    let conditions = [
        format!("If-None-Match: {etag}\r\n"),
        "If-None-Match: \"other\"\r\n".to_owned(),
        format!("If-None-Match: \"other\", W/{etag}\r\n"),
        "If-None-Match: *\r\n".to_owned(),
        format!("If-Match: {etag}\r\n"),
        "If-Match: \"other\"\r\n".to_owned(),
        "If-Match: *\r\n".to_owned(),
        format!("If-Modified-Since: {date}\r\n"),
        "If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n".to_owned(),
        format!("If-Unmodified-Since: {date}\r\n"),
        "If-Unmodified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n".to_owned(),
        format!("If-Range: {etag}\r\nRange: bytes=1-3\r\n"),
        format!("If-Range: {etag}\r\nRange: bytes=1-3,5-6\r\n"),
        format!("If-Range: W/{etag}\r\nRange: bytes=1-3\r\n"),
        format!("If-None-Match: {etag}\r\nRange: bytes=1-3\r\n"),
        format!("If-None-Match: \"other\"\r\nIf-Modified-Since: {date}\r\n"),
        format!("If-Match: {etag}\r\nIf-None-Match: {etag}\r\n"),
        "If-Match: \"other\"\r\nRange: bytes=100-\r\n".to_owned(),
        "If-Range: \"other\"\r\nRange: bytes=1-3\r\n".to_owned(),
        format!("If-Range: {date}\r\nRange: bytes=1-3\r\n"),
        "If-Range: Sun, 06 Nov 1994 08:49:37 GMT\r\nRange: bytes=1-3\r\n".to_owned(),
    ];
    fields.extend(conditions);
    let mut compared = 0;
    for path in ["/small.txt", "/big.bin", "/empty.txt", "/sub/", "/none.txt"] {
        for field in &fields {
            let mut ours = ask(server.connect(), "GET", path, field);
            let mut theirs = ask(TcpStream::connect(("127.0.0.1", nginx.port)).unwrap(), "GET", path, field);
            let place = format!("{path} {field:?}");
            assert_eq!(ours.status, theirs.status, "{place}");
            assert_eq!(ours.field("content-range"), theirs.field("content-range"), "{place}");
            if ours.status < 400 {
                ours.hide_boundary();
                theirs.hide_boundary();
                for name in
                    ["etag", "last-modified", "content-length", "content-type", "accept-ranges", "location"]
                {
                    assert_eq!(ours.field(name), theirs.field(name), "{name} of {place}");
                }
                assert!(
                    ours.body == theirs.body,
                    "{place}: {:?}",
                    String::from_utf8_lossy(&ours.body[..1000])
                );
            }
            compared += 1;
        }
    }
    assert_eq!(compared, 5 * fields.len());
}
