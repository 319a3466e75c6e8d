//! The command with a model: what it prints, what it writes, and how it is interrupted.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use super::{SMOLLM2, root};
use crate::cli::{callme, compare};

const FUNCTIONS: &str = r#"[
    {"name": "fn_add_numbers", "description": "Adds two numbers.",
        "parameters": {"a": {"type": "number"}, "b": {"type": "number"}}},
    {"name": "fn_note", "description": "Notes a text.", "parameters": {"text": {"type": "string"}}}
]"#;

/// A folder with everything but the prompts.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("functions.json"), FUNCTIONS).unwrap();
    fs::write(
        folder.path().join("short.json"),
        r#"{"system": "Call the function that fits.", "examples": []}"#,
    )
    .unwrap();
    folder
}

fn command(folder: &Path, prompts: &str, more: &str) -> Command {
    fs::write(folder.join("prompts.json"), prompts).unwrap();
    let mut command = callme(folder);
    command.args(["--model", SMOLLM2, "--models-dir", root().join("models").to_str().unwrap()]);
    command.args("--threads 1 --prompts_config short.json".split(' '));
    command.args("--functions_definition functions.json --input prompts.json".split(' '));
    command.args(more.split_whitespace());
    command
}

/// Runs over `prompts` and gives what is written to the file `output` of `more`.
#[track_caller]
fn check(prompts: &str, more: &str, status: i32, stderr: &str, output: &str) -> String {
    let folder = folder();
    let found = command(folder.path(), prompts, more).output().unwrap();
    compare(folder.path(), more, &found, (status, "", stderr));
    assert!(!folder.path().join(format!("{output}.partial")).exists());
    fs::read_to_string(folder.path().join(output)).unwrap()
}

const ADD: &str = r#"[{"prompt": "What is the sum of 2 and 3?", "id": 7}]"#;

#[test]
#[ignore = "needs a GGUF in models/"]
fn a_run_writes_its_calls() {
    let call = r#"{"prompt":"What is the sum of 2 and 3?","name":"fn_add_numbers","parameters":{"a":2.0,"b":3.0}}"#;
    let json = check(
        ADD,
        "--output new/calls.json",
        0,
        "1 call in … s, … calls a second; written to new/calls.json\n",
        "new/calls.json",
    );
    let compact: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(compact.to_string(), format!("[{call}]"));
    let lines = check(ADD, "-q --output calls.jsonl", 0, "", "calls.jsonl");
    assert_eq!(lines, format!("{{\"id\":7,{}\n", &call[1..]));
    let stderr =
        "fn_add_numbers(a=2.0, b=3.0)\n  prompt 1: tokens: … chosen, … forced; … s\n1 call in …\n";
    let verbose =
        check(ADD, "--verbose --output calls.json", 0, &format!("…{stderr}"), "calls.json");
    assert_eq!(verbose, json);

    let folder = folder();
    let found = command(folder.path(), ADD, "-q --output -").output().unwrap();
    compare(folder.path(), "-", &found, (0, &json, ""));
}

#[test]
#[ignore = "needs a GGUF in models/"]
fn the_calls_of_a_model_are_scored() {
    let folder = folder();
    let folder = folder.path();
    let label = r#", "name": "fn_add_numbers", "parameters": {"a": 3.0, "b": 2.0}, "accept": []}]"#;
    fs::write(folder.join("labelled.json"), ADD.replace("}]", label)).unwrap();
    let mut command = callme(folder);
    command.args(["--models-dir", root().join("models").to_str().unwrap(), "eval"]);
    command.args(["--model", SMOLLM2, "--cases", "labelled.json", "--output", "scored.json"]);
    command.args("--threads 1 --prompts_config short.json".split(' '));
    command.args("--functions_definition functions.json".split(' '));
    let stdout =
        "category  right …labelled       1/1         0/1\n…  wrong_value\n\nprobability …\n";
    let stderr = "1 call in … s, … calls a second; written to scored.json\n";
    compare(folder, "eval", &command.output().unwrap(), (0, stdout, stderr));
    let written = fs::read_to_string(folder.join("scored.json")).unwrap();
    let report: serde_json::Value = serde_json::from_str(&written).unwrap();
    assert_eq!(report["model"]["sha256"].as_str().map(str::len), Some(64));
    assert_eq!(report["config"]["prompts"]["system"], "Call the function that fits.");
    let record = &report["records"][0];
    assert_eq!((&record["id"], &record["reason"]), (&7.into(), &"wrong_value".into()));
    assert_eq!(record["calls"][0]["parameters"].to_string(), r#"{"a":2.0,"b":3.0}"#);
}

#[test]
#[ignore = "needs a GGUF in models/"]
fn a_value_that_is_cut_and_a_function_that_cannot_be_called_are_told() {
    let prompts = r#"[
        {"prompt": "Note it", "functions": [{"name": "fn_note", "parameters": {"text": {"type": "string"}}}]},
        {"prompt": "Bad", "id": "u1",
            "functions": [{"name": "fn_bad", "parameters": {"text": {"type": "string", "disallow": "null"}}}]},
        {"prompt": "Stop", "functions": [{"name": "fn_stop", "parameters": {}}]}
    ]"#;
    let cut = r#"the value of "text" was cut at 2 tokens (--max-value-tokens)"#;
    let bad = r#""fn_bad" cannot be called: /1/functions/0/parameters/text/disallow: "disallow" is not supported"#;
    let stderr = format!(
        "prompt 1 \"Note it\": {cut}\nprompt 2 \"Bad\": {bad}\n3 calls in … s, … calls a second; 1 failed; 1 cut at a limit; written to calls.jsonl\n"
    );
    let arguments = "--max-value-tokens 2 --output calls.jsonl";
    let found = check(prompts, arguments, 1, &format!("…{stderr}"), "calls.jsonl");
    let records: Vec<serde_json::Value> =
        found.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(records.len(), 3);
    assert!(records[0]["parameters"]["text"].is_string());
    assert_eq!(records[0]["error"], cut);
    assert_eq!(
        records[1],
        serde_json::json!({"id": "u1", "prompt": "Bad", "name": null, "parameters": {}, "error": bad})
    );
    assert_eq!(
        records[2],
        serde_json::json!({"prompt": "Stop", "name": "fn_stop", "parameters": {}})
    );
}

#[test]
#[ignore = "needs a GGUF in models/"]
fn a_report_tells_how_sure_each_call_is() {
    let folder = folder();
    let more = "-q --output calls.jsonl --report new/report.jsonl --min-confidence";
    let run = |min: &str| {
        let found = command(folder.path(), ADD, &format!("{more} {min}")).output().unwrap();
        let read = |name: &str| -> serde_json::Value {
            let text = fs::read_to_string(folder.path().join(name)).unwrap();
            assert_eq!(text.lines().count(), 1, "{text}");
            serde_json::from_str(&text).unwrap()
        };
        (found.status.code(), read("calls.jsonl"), read("new/report.jsonl"))
    };
    let (status, call, line) = run("0");
    assert_eq!(status, Some(0));
    assert_eq!(
        (&line["id"], &line["calls"][0]["name"], &line["calls"][0]["parameters"]),
        (&call["id"], &call["name"], &call["parameters"])
    );
    let confidence = &line["calls"][0]["confidence"];
    let p = |value: &serde_json::Value| value.as_f64().unwrap();
    let parts = [&confidence["function"], &confidence["end"]].into_iter();
    let arguments = confidence["arguments"].as_array().unwrap();
    let product: f64 =
        parts.chain(arguments.iter().map(|one| &one["probability"])).map(p).product();
    assert!((product - p(&confidence["call"])).abs() < 1e-9 && product > 0.0, "{line}");
    assert!(product < 1.0, "{line}");
    assert_eq!(confidence["runner_up"]["name"], "fn_note");
    assert_eq!(
        line["calls"][0]["grounding"][1]["in_prompt"],
        serde_json::json!({"start": 25, "end": 26})
    );
    assert!(
        line["n_tokens_chosen"].as_u64().unwrap() > 1 && p(&line["elapsed_ms"]) > 0.0,
        "{line}"
    );

    let (status, call, line) = run("1");
    assert_eq!(status, Some(1));
    assert_eq!(
        (&call["name"], &call["parameters"]),
        (&serde_json::Value::Null, &serde_json::json!({}))
    );
    let error = call["error"].as_str().unwrap();
    assert!(
        error.ends_with("is below --min-confidence 1: fn_add_numbers(a=2.0, b=3.0)"),
        "{error}"
    );
    assert_eq!(line["error"], call["error"]);
    assert_eq!(line["calls"][0]["name"], "fn_add_numbers");
}

#[test]
#[ignore = "needs a GGUF in models/"]
fn a_prompt_may_have_several_calls_or_none() {
    let folder = folder();
    let prompts = r#"["Add 2 and 3, then add 4 and 5", "Add 4 and 5"]"#;
    let read = |more: &str| -> Vec<serde_json::Value> {
        let more = format!("-q --output calls.jsonl --report report.jsonl {more}");
        let found = command(folder.path(), prompts, &more).output().unwrap();
        assert_eq!(found.status.code(), Some(0), "{}", String::from_utf8_lossy(&found.stderr));
        let text = fs::read_to_string(folder.path().join("calls.jsonl")).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let several = read("--calls many");
    for record in &several {
        let keys: Vec<&str> = record.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(keys, ["prompt", "calls"]);
        for call in record["calls"].as_array().unwrap() {
            let keys: Vec<&str> = call.as_object().unwrap().keys().map(String::as_str).collect();
            assert_eq!(keys, ["name", "parameters"]);
        }
    }
    assert!(several[0]["calls"].as_array().unwrap().len() > 1, "{several:?}");
    let mut check = callme(folder.path());
    check.args(["check", "--functions_definition", "functions.json", "calls.jsonl"]);
    assert_eq!(check.output().unwrap().status.code(), Some(0), "{several:?}");

    for (threshold, has_calls) in [("0.0", false), ("1.0", true)] {
        let config = format!(r#"{{"examples": [], "no_call": {{"threshold": {threshold}}}}}"#);
        fs::write(folder.path().join("short.json"), config).unwrap();
        for record in read("--no-call") {
            assert_eq!(record["name"].is_string(), has_calls, "{record}");
            assert_eq!(record.get("error"), None);
        }
        let report = fs::read_to_string(folder.path().join("report.jsonl")).unwrap();
        let line: serde_json::Value = serde_json::from_str(report.lines().next().unwrap()).unwrap();
        assert!((0.0..=1.0).contains(&line["no_call"].as_f64().unwrap()), "{line}");
        assert_eq!(line["calls"].as_array().unwrap().is_empty(), !has_calls);
    }
}

#[test]
#[ignore = "needs a GGUF in models/"]
fn a_call_is_explained_step_by_step() {
    let folder = folder();
    let mut command = callme(folder.path());
    command.args(["explain", "What is the sum of 2 and 3?", "--show-prompt", "--model", SMOLLM2]);
    command.args(["--models-dir", root().join("models").to_str().unwrap(), "--no-prefix-cache"]);
    command.args(
        "--threads 1 --prompts_config short.json --functions_definition functions.json".split(' '),
    );
    let found = command.output().unwrap();
    assert_eq!(found.status.code(), Some(0), "{}", String::from_utf8_lossy(&found.stderr));
    let text = String::from_utf8(found.stdout).unwrap();
    assert!(text.contains("Call the function that fits."), "{text}");
    assert!(text.contains("\n forced  `") && text.contains(" %  `"), "{text}");
    assert!(text.contains("\nfn_add_numbers(a=2.0, b=3.0)\n"), "{text}");
    assert!(text.contains("(next fn_note "), "{text}");
}

#[test]
#[ignore = "needs a GGUF in models/"]
fn the_bench_measures_what_it_says_and_makes_what_is_missing() {
    let folder = folder();
    let label = r#""name": "fn_add_numbers", "parameters": {"a": 2, "b": 3}"#;
    let prompts = format!(r#"[{{"prompt": "What is the sum of 2 and 3?", {label}}}]"#);
    fs::write(folder.path().join("prompts.json"), prompts).unwrap();
    let source = root().join("models").join(format!("{SMOLLM2}.gguf"));
    fs::create_dir(folder.path().join("models")).unwrap();
    fs::copy(&source, folder.path().join("models/small.gguf")).unwrap();
    let files = "--json r.json --csv r.csv --plot r.svg";
    let mut command = callme(folder.path());
    command.args("bench --models-dir models --models models/small.gguf".split(' '));
    command.args("--quantize Q8_0 --repeat 1 --threads 1 --prompts_config short.json".split(' '));
    command.args("--functions_definition functions.json --input prompts.json".split(' '));
    let found = command.args(files.split(' ')).output().unwrap();
    let stderr = String::from_utf8_lossy(&found.stderr);
    assert_eq!(found.status.code(), Some(0), "{stderr}");
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    let report: serde_json::Value = serde_json::from_str(&read("r.json")).unwrap();
    let table = String::from_utf8(found.stdout).unwrap();
    let models = report["models"].as_array().unwrap();
    assert_eq!(models.len(), 2, "{report}");
    for (model, name) in models.iter().zip(["small", "small-q8_0"]) {
        assert_eq!(model["model"], name);
        let size = fs::metadata(folder.path().join(format!("models/{name}.gguf"))).unwrap().len();
        assert_eq!(model["file_bytes"], size);
        assert_eq!(model["score"], 1.0, "this model knows this sum");
        let run = &model["runs"][0];
        let figure = |key: &str| run[key].as_f64().unwrap();
        let calls = figure("calls_per_s") * figure("wall_s");
        assert!((calls - 1.0).abs() < 1e-6, "{run}");
        let rate = figure("n_rows") / figure("wall_s") / figure("prompt_tokens_per_s");
        assert!((rate - figure("reference_share")).abs() < 1e-6, "{run}");
        assert!(figure("first_call_s") >= figure("load_s"), "{run}");
        assert!(figure("generation_tokens_per_s") > 1.0, "{run}");
        assert!(table.lines().any(|line| line.starts_with(&format!("{name} "))), "{table}");
    }
    assert_eq!(models[1]["agreement"], 1.0);
    let types = models[1]["tensor_types"].to_string();
    assert!(types.contains("Q8_0") && !types.contains("Q4_1"), "{types}");
    assert_eq!(read("r.csv").lines().count(), 3);
    assert!(read("r.svg").contains("small-q8_0"));
}

/// Sends a signal once the first prompt is answered, while the second, a long one, is being read.
fn interrupted(folder: &Path, signal: &str) -> (Output, Duration) {
    let long = "one more ".repeat(2500);
    let prompts = format!(r#"[{{"prompt": "What is 2 plus 3?"}}, {{"prompt": "{long}"}}]"#);
    let mut child: Child = command(folder, &prompts, "-vv --output calls.json")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut told = Vec::new();
    let mut sent = None;
    loop {
        let start = told.len();
        if stderr.read_until(b'\n', &mut told).unwrap() == 0 {
            break;
        }
        if told[start..].starts_with(b"  prompt 1: tokens") && sent.is_none() {
            let id = child.id().to_string();
            assert!(Command::new("kill").args(["-s", signal, &id]).status().unwrap().success());
            sent = Some(Instant::now());
        }
    }
    let mut output = child.wait_with_output().unwrap();
    output.stderr = told;
    (output, sent.unwrap().elapsed())
}

#[test]
#[ignore = "needs a GGUF in models/"]
fn a_signal_is_heard_during_a_long_prompt_and_what_is_finished_is_kept() {
    for (signal, status) in [("INT", 130), ("TERM", 143)] {
        let folder = folder();
        let folder = folder.path();
        fs::write(folder.join("calls.json"), "the old ones").unwrap();
        let (output, heard_after) = interrupted(folder, signal);
        let stderr = "…interrupted: 1 of 2 prompts are kept in calls.json.partial\n";
        compare(folder, signal, &output, (status, "", stderr));
        // It takes a second where the machine is free, and the whole prompt takes a minute.
        assert!(heard_after < Duration::from_secs(15), "{heard_after:?}");
        assert_eq!(fs::read_to_string(folder.join("calls.json")).unwrap(), "the old ones");
        let partial = fs::read_to_string(folder.join("calls.json.partial")).unwrap();
        let partial: serde_json::Value = serde_json::from_str(&partial).unwrap();
        assert_eq!(partial.as_array().unwrap().len(), 1);
        assert_eq!(partial[0]["prompt"], "What is 2 plus 3?");
        let mut names: Vec<_> =
            fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name()).collect();
        // The folder is the home too, with the user's cache in it.
        names.retain(|name| name != ".cache");
        names.sort();
        assert_eq!(
            names,
            ["calls.json", "calls.json.partial", "functions.json", "prompts.json", "short.json"]
        );
    }
}
