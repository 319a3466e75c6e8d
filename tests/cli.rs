//! The command, run as a person runs it: exact stdout, stderr and exit status.
//!
//! A case is a line of a table. In what is expected, `DIR` is the folder of the case and `…` stands
//! for words that another module's own tests fix.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use assert_cmd::cargo::cargo_bin;

const FUNCTIONS: &str = r#"[{"name": "fn_ring", "description": "Rings a bell.", "parameters": {"times": {"type": "integer"}}}]"#;
const PROMPTS: &str = r#"[{"prompt": "Ring twice"}]"#;

/// `callme` in `folder`, with an environment that says nothing.
pub(crate) fn callme(folder: &Path) -> Command {
    let mut command = Command::new(cargo_bin("callme"));
    command.current_dir(folder).stdin(Stdio::null());
    for name in ["RUST_LOG", "NO_COLOR", "COLUMNS", "CALLME_MODELS", "XDG_DATA_HOME"] {
        command.env_remove(name);
    }
    // The user's own data folder may have models.
    command.env("HOME", folder);
    command
}

/// A folder with `functions.json` and `prompts.json` that are as they should be.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("functions.json"), FUNCTIONS).unwrap();
    fs::write(folder.path().join("prompts.json"), PROMPTS).unwrap();
    folder
}

const GIVEN: &str =
    "--functions_definition functions.json --input prompts.json --output calls.json";

#[track_caller]
fn check(folder: &Path, arguments: &str, status: i32, stdout: &str, stderr: &str) {
    let output = callme(folder).args(arguments.split_whitespace()).output().unwrap();
    compare(folder, arguments, &output, (status, stdout, stderr));
}

#[track_caller]
pub(crate) fn compare(folder: &Path, what: &str, output: &Output, expected: (i32, &str, &str)) {
    // The current directory is told with its symbolic links followed.
    let real = folder.canonicalize().unwrap();
    let text = |bytes: &[u8]| {
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        text.replace(real.to_str().unwrap(), "DIR").replace(folder.to_str().unwrap(), "DIR")
    };
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    let found =
        format!("{what}\nstatus {:?}\nstdout:\n{stdout}\nstderr:\n{stderr}", output.status.code());
    assert!(is_like(&stderr, expected.2), "{found}\nexpected stderr:\n{}", expected.2);
    assert!(is_like(&stdout, expected.1), "{found}\nexpected stdout:\n{}", expected.1);
    assert_eq!(output.status.code(), Some(expected.0), "{found}");
}

/// Equality, but for what `…` stands for.
fn is_like(found: &str, expected: &str) -> bool {
    let mut parts = expected.split('…');
    let Some(mut rest) = parts.next().and_then(|first| found.strip_prefix(first)) else {
        return false;
    };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        match rest.split_once(part) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    true
}

#[test]
fn the_long_help_is_the_golden_one() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/help.txt");
    let folder = folder();
    let output = callme(folder.path()).arg("--help").output().unwrap();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&golden, &output.stdout).unwrap();
    }
    let expected = fs::read_to_string(golden).unwrap();
    compare(folder.path(), "--help", &output, (0, &expected, ""));
    for line in expected.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
}

#[test]
fn short_help_and_versions_go_to_stdout() {
    let folder = folder();
    let version = env!("CARGO_PKG_VERSION");
    check(folder.path(), "-h", 0, "Turns natural-language…--help says more, with examples\n", "");
    check(folder.path(), "-V", 0, &format!("callme {version}\n"), "");
    let long = format!("callme {version} (commit …)\nllama-cpp-2…\n");
    check(folder.path(), "--version", 0, &long, "");
    check(folder.path(), "model fetch -h", 0, "Fetch a model…--models-dir <DIR>…", "");
}

#[test]
fn usage_errors_are_told_on_stderr() {
    let folder = folder();
    let folder = folder.path();
    let more = "\n\nFor more information, try '--help'.\n";
    for (arguments, stderr) in [
        ("--inptu x", "error: unexpected argument '--inptu' found…\n".to_owned()),
        ("--input", "error: a value is required for '--input <FILE>' but none was supplied…\n".into()),
        ("x", "error: unrecognized subcommand 'x'…\n".into()),
        ("-q -v", "error: the argument '--quiet' cannot be used with '--verbose...'…\n".into()),
        (
            "--temperature -1",
            format!("error: invalid value '-1' for '--temperature <T>': not a number of 0 or more{more}"),
        ),
        ("--temperature nan", "error: invalid value 'nan' for '--temperature <T>'…\n".into()),
        ("--threads 0", "error: invalid value '0' for '--threads <N>'…\n".into()),
        ("--max-value-tokens 0", "error: invalid value '0' for '--max-value-tokens <N>'…\n".into()),
        ("--seed -1", "error: …'-1'…\n".into()),
        (
            "--emit-grammar=ebnf",
            format!("error: invalid value 'ebnf' for '--emit-grammar[=<FORMAT>]'\n  [possible values: gbnf, json, svg]…{more}"),
        ),
        ("model", "List, fetch or locate models\n…\n".into()),
        ("model fetch a b", "error: unexpected argument 'b' found…\n".into()),
        (
            "model fetch ./a.gguf",
            "error: `./a.gguf` is a path, and only models of the catalogue can be fetched; there is no such file; `callme model list` shows their names\n".into(),
        ),
        (
            "--input x model list",
            "error: the flags of a run do not go with the subcommand model; see callme model --help\n".into(),
        ),
        (
            "--input - --functions-definition -",
            "error: both --functions_definition and --input are -, and stdin can be read only once\n".into(),
        ),
        (
            "--functions_definition functions.json --output ./functions.json",
            "error: --output ./functions.json is the file that --functions_definition reads; name another\n".into(),
        ),
        (
            "--functions_definition functions.json --input prompts.json --output prompts.json",
            "error: --output prompts.json is the file that --input reads; name another\n".into(),
        ),
        (
            "--functions_definition functions.json --report functions.json",
            "error: --report functions.json is the file that --functions_definition reads; name another\n".into(),
        ),
        (
            "--output calls.jsonl --report calls.jsonl",
            "error: --output and --report both go to calls.jsonl; name another for one of them\n".into(),
        ),
        (
            "--output - --report -",
            "error: --output and --report both go to stdout; name another for one of them\n".into(),
        ),
        (
            "--output calls.jsonl --report ./calls.jsonl",
            "error: --output and --report both go to calls.jsonl; name another for one of them\n".into(),
        ),
        ("--min-confidence 50", "error: …not a number from 0 to 1\n…".into()),
        ("explain", "error: the following required arguments were not provided:\n  <PROMPT>…".into()),
        ("--report r explain x", "error: the flags of a run do not go with the subcommand explain; see callme explain --help\n".into()),
    ] {
        check(folder, arguments, 2, "", &stderr);
    }
    assert_eq!(fs::read_to_string(folder.join("prompts.json")).unwrap(), PROMPTS);
}

#[test]
fn missing_files_are_told_with_where_they_were_looked_for() {
    let folder = folder();
    let folder = folder.path();
    fs::create_dir(folder.join("there")).unwrap();
    for (arguments, stderr) in [
        (
            "",
            "error: no data/input/functions_definition.json here (looked for DIR/data/input/functions_definition.json); give another with --functions_definition FILE\n",
        ),
        (
            "--functions_definition functions.json",
            "error: no data/input/function_calling_tests.json here (looked for DIR/data/input/function_calling_tests.json); give another with --input FILE\n",
        ),
        (
            "--emit-grammar",
            "error: no data/input/functions_definition.json here (looked for DIR/data/input/functions_definition.json); give another with --functions_definition FILE\n",
        ),
        (
            "--functions_definition a/b.json",
            "error: --functions_definition a/b.json: no such file (looked for DIR/a/b.json)\n",
        ),
        (
            "--functions_definition functions.json --input nope",
            "error: --input nope: no such file (looked for DIR/nope)\n",
        ),
        (
            "--prompts_config nope.json",
            "error: --prompts_config nope.json: no such file (looked for DIR/nope.json)\n",
        ),
        (
            "--functions_definition there",
            "error: --functions_definition there: is a directory, not a file\n",
        ),
        (
            "--functions_definition functions.json --input there",
            "error: --input there: is a directory, not a file\n",
        ),
        ("--prompts_config there", "error: --prompts_config there: is a directory, not a file\n"),
        (
            "--functions_definition functions.json/x",
            "error: --functions_definition functions.json/x: Not a directory (os error 20)\n",
        ),
    ] {
        check(folder, arguments, 2, "", stderr);
    }
}

/// Prompts that cannot be read, and what is said after `error: prompts.json: `.
const BAD_PROMPTS: [(&[u8], &str); 9] = [
    (b"[\n    {\n    }\n]\n", "/0 (record 1): no \"prompt\"; give each record one, or remove the record"),
    (
        b"[\n  {\n    \"prompt\" \"wave to them\"\n  },\n  {\n    \"prompt\": \"wave 4 times\"\n  },\n]\n",
        "line 3, column 14: expected `:`",
    ),
    (b"[\n  {\"prompt\": \"wave 4 times\"},\n]\n", "line 3, column 1: trailing comma"),
    (b"[{\"prompt\": null}]", "/0 (record 1): \"prompt\" is null, not a string"),
    (b"{\"prompt\": \"a\"}\n{\"prompt\": 7}\n", "line 2: \"prompt\" is a number, not a string"),
    (b"", "empty; an empty list of prompts is written []"),
    (b"[\"caf\xe9\"]", "not UTF-8 at byte 5; save the file as UTF-8"),
    (b"ring it", "line 1, column 1: expected value"),
    (b"[{\"prompt\": \"a\", \"functions\": [{}]}]", "/0/functions/0…"),
];

/// Definitions that cannot be read; the words are those of `definitions`.
const BAD_FUNCTIONS: [(&[u8], &str); 7] = [
    (
        b"[\n  {\n    \"name\": \"fn_ring\",\n    \"parameters\": {},,\n  },\n]\n",
        "…line 4, column …",
    ),
    (b"", "…empty…"),
    (b"[{\"name\": \"\xff\"}]", "…UTF-8…"),
    (b"[{\"parameters\": {}}]", "/0…name…"),
    (b"[{\"name\": \"fn_ring\"}, {\"name\": \"fn_ring\"}]", "/1…fn_ring…"),
    (b"7", "…number…"),
    (b"[{\"name\": \"fn_ring\", \"parameters\": {\"times\": 3}}]", "/0/parameters/times…"),
];

#[test]
fn input_that_cannot_be_read_is_told_with_its_place() {
    let folder = folder();
    let folder = folder.path();
    for (prompts, expected) in BAD_PROMPTS {
        fs::write(folder.join("prompts.json"), prompts).unwrap();
        check(folder, GIVEN, 2, "", &format!("error: prompts.json: {expected}\n"));
    }
    for (functions, expected) in BAD_FUNCTIONS {
        fs::write(folder.join("functions.json"), functions).unwrap();
        for arguments in [GIVEN, "--functions_definition functions.json --emit-grammar"] {
            check(folder, arguments, 2, "", &format!("error: functions.json: {expected}\n"));
        }
    }
    assert!(!folder.join("calls.json").exists());
}

#[test]
fn a_prompt_configuration_that_is_none_is_told_with_its_place() {
    let folder = folder();
    let folder = folder.path();
    for (config, expected) in
        [("{\n  \"model\" 3\n}", "2:11…"), ("{\"modle\": 1}", "…modle…"), ("[]", "…")]
    {
        fs::write(folder.join("config.json"), config).unwrap();
        let arguments = format!("{GIVEN} --prompts-config config.json");
        check(folder, &arguments, 2, "", &format!("error: …config.json:{expected}\n"));
    }
}

#[test]
fn no_functions_for_a_prompt_is_an_error() {
    let folder = folder();
    fs::write(folder.path().join("functions.json"), "[]").unwrap();
    check(
        folder.path(),
        GIVEN,
        2,
        "",
        "error: functions.json: no functions; define at least one\n",
    );
}

#[test]
fn an_output_that_cannot_be_written_is_told_before_any_work() {
    let folder = folder();
    let folder = folder.path();
    fs::create_dir(folder.join("there")).unwrap();
    for (output, stderr) in [
        ("there", "error: output there: is a directory; name a file in it\n"),
        ("there/", "error: output there/: is a directory; name a file in it\n"),
        ("new/", "error: output new/: is a directory; name a file in it\n"),
        (
            "functions.json/x.json",
            "error: output functions.json/x.json: functions.json is not a directory\n",
        ),
    ] {
        let arguments =
            format!("--functions_definition functions.json --input prompts.json --output {output}");
        check(folder, &arguments, 2, "", stderr);
    }
}

#[test]
fn no_prompts_are_an_empty_list() {
    let folder = folder();
    let folder = folder.path();
    for prompts in ["[]", "[\n]\n", "\u{feff}[]"] {
        fs::write(folder.join("prompts.json"), prompts).unwrap();
        let arguments =
            "--functions_definition functions.json --input prompts.json --output a/b.json";
        check(folder, arguments, 0, "", "0 calls in …; written to a/b.json\n");
        assert_eq!(fs::read_to_string(folder.join("a/b.json")).unwrap(), "[]\n");
        let arguments = format!("{arguments} --models-dir nowhere");
        let warning = " WARN --models-dir names no folder path=nowhere\n0 calls in …\n";
        check(folder, &arguments, 0, "", warning);
        let arguments = "-q --functions_definition functions.json --input prompts.json --output -";
        check(folder, arguments, 0, "[]\n", "");
    }
}

#[test]
fn stdin_is_read_where_it_is_asked_for() {
    use std::io::Write;
    let folder = folder();
    let folder = folder.path();
    for (arguments, text, stderr) in [
        (
            "--functions_definition functions.json --input -",
            "[{}]",
            "error: <stdin>: /0 (record 1): no \"prompt\"; give each record one, or remove the record\n",
        ),
        ("--functions_definition - --input prompts.json", "", "error: <stdin>: …empty…\n"),
        ("--functions_definition - --emit-grammar", "", "error: <stdin>: …empty…\n"),
    ] {
        let mut child = callme(folder)
            .args(arguments.split_whitespace())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        compare(folder, arguments, &child.wait_with_output().unwrap(), (2, "", stderr));
    }
}

#[test]
fn what_messages_quote_is_escaped() {
    let folder = folder();
    check(
        folder.path(),
        "--functions_definition \u{1b}[2J\u{202e}x",
        2,
        "",
        "error: --functions_definition \\u001b[2J\\u202ex: no such file (looked for DIR/\\u001b[2J\\u202ex)\n",
    );
}

#[cfg(target_os = "linux")]
#[test]
fn a_closed_stdout_is_no_error_and_a_full_one_is() {
    let folder = folder();
    let folder = folder.path();
    fs::write(folder.join("prompts.json"), "[]").unwrap();
    let to_stdout = "-q --functions_definition functions.json --input prompts.json --output -";
    for arguments in ["--help", "--version", to_stdout] {
        // A socket whose other end is closed refuses as a pipe does.
        let (reader, writer) = std::os::unix::net::UnixStream::pair().unwrap();
        drop(reader);
        let writer = Stdio::from(std::os::fd::OwnedFd::from(writer));
        let mut command = callme(folder);
        let output = command.args(arguments.split_whitespace()).stdout(writer).output().unwrap();
        compare(folder, arguments, &output, (0, "", ""));

        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut command = callme(folder);
        let output = command.args(arguments.split_whitespace()).stdout(full).output().unwrap();
        let stderr = "error: writing <stdout>: No space left on device (os error 28)\n";
        compare(folder, arguments, &output, (2, "", stderr));
    }
}

#[test]
fn functions_that_cannot_be_expressed_are_comments_of_the_grammar() {
    let folder = folder();
    let bad = r#"{"name": "fn_bad", "parameters": {"n": {"type": "integer", "disallow": 1}}}"#;
    let emit = "--functions_definition functions.json --emit-grammar";
    let comment = |at: u8| {
        format!("# fn_bad: left out: /{at}/parameters/n/disallow: \"disallow\" is not supported\n")
    };

    fs::write(folder.path().join("functions.json"), format!("[{bad}]")).unwrap();
    check(folder.path(), emit, 1, &comment(0), "");

    let mixed = format!("{},{bad}]", FUNCTIONS.trim_end_matches(']'));
    fs::write(folder.path().join("functions.json"), mixed).unwrap();
    check(folder.path(), emit, 1, &format!("{}root ::= …", comment(1)), "");

    fs::write(folder.path().join("functions.json"), FUNCTIONS).unwrap();
    check(folder.path(), emit, 0, "root ::= …", "");
}

#[test]
fn a_grammar_is_printed_in_the_format_asked_for() {
    let folder = folder();
    let svg = "<svg xmlns=\"http://www.w3.org/2000/svg\"…id=\"rule-fn-ring\"…</svg>\n";
    let json =
        "{\n  \"rules\": [\n    {\n      \"name\": \"root\",\n      \"comment\": [],\n…  ]\n}\n";
    for (format, stdout) in [
        ("--emit-grammar", "root ::= …"),
        ("--emit-grammar=gbnf", "root ::= …"),
        ("--emit-grammar gbnf", "root ::= …"),
        ("--emit-grammar=json", json),
        ("--emit_grammar json", json),
        ("--emit-grammar=svg", svg),
        ("--emit-grammar svg --quiet", svg),
    ] {
        let arguments = format!("--functions_definition functions.json {format}");
        check(folder.path(), &arguments, 0, stdout, "");
    }
    let bad = r#"[{"name": "fn_bad", "parameters": {"n": {"type": "integer", "disallow": 1}}}]"#;
    fs::write(folder.path().join("functions.json"), bad).unwrap();
    for format in ["json", "svg"] {
        let arguments = format!("--functions_definition functions.json --emit-grammar={format}");
        let stderr = "error: functions.json: there is no function to choose from: fn_bad: /properties/n/disallow: \"disallow\" is not supported\n";
        check(folder.path(), &arguments, 2, "", stderr);
    }
}

/// `callme check` over the bell of `FUNCTIONS`, with the text in a file.
#[track_caller]
fn checked(text: &str, flags: &str, status: i32, stdout: &str, stderr: &str) {
    let folder = folder();
    fs::write(folder.path().join("calls"), text).unwrap();
    fs::write(folder.path().join("tokens.gbnf"), "root ::= <[7]> \"x\"\n").unwrap();
    fs::write(folder.path().join("list.gbnf"), "root ::= (\"- \" [a-z]+ \"\\n\")+\n").unwrap();
    check(folder.path(), &format!("check {flags} calls"), status, stdout, stderr);
}

const BELL: &str = "--functions_definition functions.json";

#[test]
fn check_reads_calls_and_records_in_any_spelling() {
    checked(r#"{"arguments":{"times":2.0},"name":"fn_ring"}"#, BELL, 0, "the text: ok\n", "");
    let records = r#"[{"prompt": "Ring", "name": "fn_ring", "parameters": {"times": 2}},
        {"prompt": "Sing", "name": null, "parameters": {}}]"#;
    checked(
        records,
        BELL,
        1,
        "record 1: ok\nrecord 2: not ok: /name: expected `\"fn_ring\", \"arguments\": {\"times\": `\n",
        "record 2, spelled anew, byte 9:\n  {\"name\": null\n           ^\n",
    );
    checked(
        "{\"times\": 1}\n{\"times\": 2}\n",
        &format!("{BELL} --function fn_ring"),
        0,
        "line 1: ok\nline 2: ok\n",
        "",
    );
    checked("[]", BELL, 0, "", "");
}

#[test]
fn check_points_at_the_first_wrong_byte() {
    checked(
        r#"{"name": "fn_ring", "arguments": {"times": 2.5}}"#,
        BELL,
        1,
        "the text: not ok: /arguments/times: expected `}}` or a digit\n",
        "the text, spelled anew, byte 44:\n  {\"name\": \"fn_ring\", \"arguments\": {\"times\": 2.5\n                                              ^\n",
    );
    checked(
        r#"{"times": true}"#,
        &format!("{BELL} --function fn_ring"),
        1,
        "the text: not ok: /times: expected `-`, `0}}` or a digit from 1 to 9\n",
        "…^\n",
    );
    checked("{\"name\": ", BELL, 1, "the text: not ok: not JSON: EOF…\n", "");
    checked(
        r#"{"name": "fn_ring", "arguments": {"times": 2, "times": 3}}"#,
        BELL,
        1,
        "the text: not ok: /arguments: expected `}}` or a digit\n",
        "…",
    );
    checked(
        "{}",
        &format!("{BELL} -q"),
        1,
        "the text: not ok: expected `\"name\": \"fn_ring\", \"arguments\": {\"times\"…`\n",
        "",
    );
}

#[test]
fn check_exact_takes_the_bytes_as_they_are() {
    let call = r#"{"name": "fn_ring", "arguments": {"times": 2}}"#;
    let exact = format!("{BELL} --exact");
    checked(&format!("{call}\n"), &exact, 0, "the text: ok\n", "");
    checked(&format!("{call}\n{call}"), &exact, 0, "line 1: ok\nline 2: ok\n", "");
    checked(
        &format!("{call}\n\n"),
        &exact,
        1,
        "line 1: ok\nline 2: not ok: expected `{\"name\": \"fn_ring\", \"arguments\": {\"times…`\n",
        "line 2, byte 0:\n  \n  ^\n",
    );
    checked(r#"{"times": 2}"#, &format!("{exact} --function fn_ring"), 0, "the text: ok\n", "");
    checked(
        r#"{"times":2}"#,
        &format!("{exact} --function fn_ring"),
        1,
        "the text: not ok: /times: expected ` `\n",
        "the text, byte 9:\n  {\"times\":2}\n           ^\n",
    );
}

#[test]
fn check_takes_any_grammar() {
    checked("- a\n- bc\n", "--grammar list.gbnf", 0, "the text: ok\n", "");
    checked(
        "- a",
        "--grammar list.gbnf",
        1,
        "the text: not ok: expected…",
        "the text, byte 3:\n  - a\n     ^\n",
    );
    checked("x", "--grammar tokens.gbnf", 2, "", "error: tokens.gbnf: …--model…\n");
    checked("x", "--grammar functions.json", 2, "", "error: functions.json: line 1…\n");
}

#[test]
fn check_tells_what_it_cannot_do() {
    checked(
        "x",
        "--functions_definition none.json",
        2,
        "",
        "error: --functions_definition none.json: no such file…\n",
    );
    checked(
        "x",
        &format!("{BELL} --function g"),
        2,
        "",
        "error: functions.json: there is no function \"g\"\n",
    );
}

#[test]
fn check_survives_a_reader_that_leaves() {
    let folder = folder();
    let call = r#"{"name": "fn_ring", "arguments": {"times": 2}}"#;
    fs::write(folder.path().join("calls"), format!("{call}\n").repeat(20_000)).unwrap();
    let mut child = callme(folder.path())
        .args(["check", "--functions_definition", "functions.json", "calls"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
