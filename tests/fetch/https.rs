//! Over HTTP, from a server of the test's own.

use std::fs;
use std::sync::atomic::Ordering;
use std::time::Duration;

use call_me_maybe::models::{Catalog, FetchConfig, Progress, Proxies};

use super::server::{Reply, Server, cut, reply, rest, whole};
use super::{Place, body, catalog, config, sha256, true_catalog};

const WHOLE: &str = "m.gguf whole";

/// Fetches `m` from a server with these replies, where `part` lies there already.
#[track_caller]
fn check(part: &[u8], replies: Vec<Reply>, result: &str, asked: &str, files: &str) {
    check_with(&true_catalog(), part, replies, result, asked, files);
}

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
    for (have, result) in [(200_000, "error"), (250_000, "error"), (300_007, "/models/m.gguf")] {
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
    assert!(found.starts_with("error: the transfer broke off: 100000 bytes of 300007"), "{found}");
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
        let result =
            format!("error: `URL/o/r/resolve/main/f.gguf` answers with status {code}: {advice}");
        check(b"", vec![reply(status, "", b"words")], &result, "GET FILE", "");
        // A part file of an earlier day is not thrown away for it.
        let asked = "GET FILE bytes=70000-";
        check(&body()[..70_000], vec![reply(status, "", b"")], &result, asked, "m.gguf.part 70000");
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
        found.starts_with("error: `https://hub.invalid/o/r/resolve/main/f.gguf` cannot be reached")
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
    huge.head = format!("HTTP/1.1 200 OK\r\nContent-Length: {size}\r\nConnection: close\r\n\r\n");
    let place = Place::new();
    let server = Server::start(vec![huge]);
    let (found, _) =
        place.fetch(Some("m"), &catalog(Some(size), &sha256(b"")), &config(&server.url()));
    let start =
        format!("error: not enough space in `/models`: at least {size} bytes more are needed, ");
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
