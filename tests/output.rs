//! What is written, byte for byte, and where it may go.

use std::fs;
use std::path::Path;

use call_me_maybe::definitions;
use call_me_maybe::output::{Calls, OutputError, OutputFile, Record, Target, Written};
use call_me_maybe::validate::FunctionCall;
use serde_json::Value;

/// A record from `prompt`, `name` ("" for none), `parameters` as JSON, `id` and `error`.
fn record(prompt: &str, name: &str, parameters: &str, id: Option<&str>, error: &str) -> Record {
    let definition = serde_json::json!([{ "name": name, "parameters": {} }]).to_string();
    Record {
        prompt: prompt.to_owned(),
        id: id.map(|id| serde_json::from_str(id).unwrap()),
        calls: Calls::One((!name.is_empty()).then(|| FunctionCall {
            name: definitions::parse(definition.as_bytes()).unwrap().remove(0).name,
            parameters: serde_json::from_str(parameters).unwrap(),
        })),
        error: (!error.is_empty()).then(|| error.to_owned()),
    }
}

fn records() -> Vec<Record> {
    vec![
        record("Ring \"twice\"", "fn_ring", r#"{"times": 2, "at": {"x": -0.1}}"#, Some("7"), ""),
        record("刺\u{202e}\n", "", "{}", None, "no function fits"),
    ]
}

const ARRAY: &str = "[
  {
    \"prompt\": \"Ring \\\"twice\\\"\",
    \"name\": \"fn_ring\",
    \"parameters\": {
      \"times\": 2,
      \"at\": {
        \"x\": -0.1
      }
    }
  },
  {
    \"prompt\": \"刺\u{202e}\\n\",
    \"name\": null,
    \"parameters\": {}
  }
]
";

const LINES: &str = "{\"id\":7,\"prompt\":\"Ring \\\"twice\\\"\",\"name\":\"fn_ring\",\"parameters\":{\"times\":2,\"at\":{\"x\":-0.1}}}
{\"prompt\":\"刺\u{202e}\\n\",\"name\":null,\"parameters\":{},\"error\":\"no function fits\"}
";

fn create(path: &Path) -> Result<OutputFile, OutputError> {
    OutputFile::create(&Target::Path(path.to_owned()))
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn the_name_decides_the_format() {
    let folder = tempfile::tempdir().unwrap();
    for (name, expected) in [
        ("calls.json", ARRAY),
        ("calls", ARRAY),
        ("calls.txt", ARRAY),
        ("calls.jsonl", LINES),
        ("calls.NDJSON", LINES),
    ] {
        let path = folder.path().join(name);
        assert_eq!(create(&path).unwrap().finish(&records()).unwrap(), Written::Whole);
        assert_eq!(fs::read_to_string(&path).unwrap(), expected, "{name}");
    }
}

#[test]
fn no_records_are_an_empty_list() {
    let folder = tempfile::tempdir().unwrap();
    for (name, expected) in [("calls.json", "[]\n"), ("calls.jsonl", "")] {
        let path = folder.path().join(name);
        create(&path).unwrap().finish(&[]).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), expected);
    }
}

#[test]
fn no_digit_and_no_character_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("calls.jsonl");
    for parameters in [
        r#"{"n":123456789012345678901234567890}"#,
        r#"{"n":-0.1}"#,
        r#"{"n":1e-9}"#,
        r#"{"n":1e+400}"#,
        r#"{"n":-0.0}"#,
        r#"{"n":2.50}"#,
        r#"{"s":""}"#,
        r#"{"s":"}}\"\\\n\t"}"#,
        r#"{"s":"é刺🦔"}"#,
        r#"{"z":1,"a":2,"m":3}"#,
        r#"{"items":[1,[],{}]}"#,
    ] {
        create(&path).unwrap().finish(&[record("p", "f", parameters, None, "")]).unwrap();
        let line = format!("{{\"prompt\":\"p\",\"name\":\"f\",\"parameters\":{parameters}}}\n");
        assert_eq!(fs::read_to_string(&path).unwrap(), line);
    }
}

#[test]
fn folders_are_made_and_nothing_else_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a/b/calls.json");
    let output = create(&path).unwrap();
    assert_eq!(names(path.parent().unwrap()), [""; 0], "before it is written");
    drop(output);
    assert_eq!(names(path.parent().unwrap()), [""; 0], "dropped");
    create(&path).unwrap().finish(&records()).unwrap();
    assert_eq!(names(path.parent().unwrap()), ["calls.json"]);
}

#[test]
fn an_existing_file_stays_whole_until_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("calls.json");
    fs::write(&path, "old").unwrap();
    let output = create(&path).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "old");
    output.finish(&records()).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), ARRAY);
}

#[test]
fn an_interrupted_run_keeps_what_was_finished() {
    let folder = tempfile::tempdir().unwrap();
    for (name, expected) in [("calls.json", ARRAY), ("calls.jsonl", LINES)] {
        let path = folder.path().join(name);
        fs::write(&path, "old").unwrap();
        let kept = create(&path).unwrap().keep_partial(&records()).unwrap().unwrap();
        assert_eq!(kept, folder.path().join(format!("{name}.partial")));
        assert_eq!(fs::read_to_string(kept).unwrap(), expected);
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
    }
}

/// The error's text with the folder's path as `DIR`.
#[track_caller]
fn refuses(folder: &Path, output: &str, expected: &str) {
    let error = create(&folder.join(output)).unwrap_err();
    let text = format!("{:#}", anyhow::Error::new(error));
    assert_eq!(text.replace(&folder.display().to_string(), "DIR"), expected);
}

#[test]
fn a_place_that_cannot_be_is_refused_before_any_work() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::create_dir(folder.join("there")).unwrap();
    fs::write(folder.join("file"), "").unwrap();
    refuses(folder, "there", "output DIR/there: is a directory; name a file in it");
    refuses(folder, "new/", "output DIR/new/: is a directory; name a file in it");
    refuses(folder, "there/..", "output DIR/there/..: is a directory; name a file in it");
    refuses(folder, "file/x.json", "output DIR/file/x.json: DIR/file is not a directory");
    refuses(folder, "file/a/x.json", "output DIR/file/a/x.json: DIR/file is not a directory");
    assert_eq!(names(folder), ["file", "there"]);
}

#[cfg(unix)]
mod unix {
    use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
    use std::process::Command;

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn permissions_are_those_of_the_old_file_or_of_any_new_one() {
        let folder = tempfile::tempdir().unwrap();
        let (ours, other) = (folder.path().join("calls.json"), folder.path().join("other"));
        create(&ours).unwrap().finish(&[]).unwrap();
        fs::write(&other, "").unwrap();
        assert_eq!(mode(&ours), mode(&other));
        for bits in [0o640, 0o600, 0o664] {
            fs::set_permissions(&ours, fs::Permissions::from_mode(bits)).unwrap();
            create(&ours).unwrap().finish(&records()).unwrap();
            assert_eq!(mode(&ours), bits);
        }
    }

    #[test]
    fn a_symbolic_link_stays_and_its_target_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        fs::create_dir(folder.join("real")).unwrap();
        symlink("real/calls.json", folder.join("calls.json")).unwrap();
        symlink("calls.json", folder.join("again.json")).unwrap();
        // First the link points to nothing, then to the file that it made.
        for _ in 0..2 {
            create(&folder.join("again.json")).unwrap().finish(&records()).unwrap();
            assert_eq!(fs::read_to_string(folder.join("real/calls.json")).unwrap(), ARRAY);
            assert!(folder.join("again.json").is_symlink());
            assert!(folder.join("calls.json").is_symlink());
        }
        assert_eq!(names(folder), ["again.json", "calls.json", "real"]);
        symlink("loop", folder.join("loop")).unwrap();
        assert!(matches!(create(&folder.join("loop")), Err(OutputError::Refused { .. })));
    }

    #[test]
    fn devices_and_pipes_are_written_and_not_replaced() {
        create(Path::new("/dev/null")).unwrap().finish(&records()).unwrap();
        assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());

        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe.jsonl");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let output = create(&pipe).unwrap();
        let reader = std::thread::spawn({
            let pipe = pipe.clone();
            move || fs::read_to_string(pipe).unwrap()
        });
        output.finish(&records()).unwrap();
        assert_eq!(reader.join().unwrap(), LINES);
        assert_eq!(names(folder.path()), ["pipe.jsonl"]);
    }

    /// `/dev/fd/N` of a file that is open: the writer's file is written, not one of its name.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_descriptor_is_written_after_what_it_has() {
        use std::os::fd::AsRawFd;
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "before\n").unwrap();
        let path = format!("/dev/fd/{}", file.as_file().as_raw_fd());
        create(Path::new(&path)).unwrap().finish(&[]).unwrap();
        assert_eq!(fs::read_to_string(file.path()).unwrap(), "before\n[]\n");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_an_error() {
        let error = create(Path::new("/dev/full")).unwrap().finish(&records()).unwrap_err();
        assert_eq!(
            format!("{:#}", anyhow::Error::new(error)),
            "writing /dev/full: No space left on device (os error 28)"
        );
    }
}

/// The values above are what a JSON reader sees, too.
#[test]
fn the_array_reads_back() {
    let values: Vec<Value> = serde_json::from_str(ARRAY).unwrap();
    assert_eq!(values[0]["parameters"]["at"]["x"].to_string(), "-0.1");
    assert_eq!(values[1]["prompt"], "刺\u{202e}\n");
}
