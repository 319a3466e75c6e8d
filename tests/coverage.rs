//! The coverage measurement, `cargo bench --bench coverage`: its parts, and a quick slice of it.

#![allow(dead_code, reason = "the bench uses the rest")]

#[path = "coverage/cases.rs"]
pub(crate) mod cases;
#[path = "coverage/judge.rs"]
pub(crate) mod judge;
#[path = "coverage/sets.rs"]
pub(crate) mod sets;
#[path = "coverage/table.rs"]
mod table;
#[path = "coverage/walk.rs"]
mod walk;

use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use self::cases::{Case, Instance, Random};
use self::judge::{Compiled, Instruments, judge};

/// No instruments.
struct Plain;

impl Instruments for Plain {
    fn load(&self, _: &str) -> Option<String> {
        None
    }

    fn convert(&self, _: &str) -> Option<Duration> {
        None
    }

    fn peak(&self, work: &mut dyn FnMut()) -> usize {
        work();
        0
    }
}

fn raw(text: &str) -> Box<serde_json::value::RawValue> {
    serde_json::from_str(text).unwrap()
}

fn case(schema: &str, valid: &[&str], invalid: &[&str]) -> Case {
    let instance = |valid| {
        move |data: &&str| Instance { description: "it".to_owned(), valid, data: raw(data) }
    };
    let instances = valid.iter().map(instance(true)).chain(invalid.iter().map(instance(false)));
    let instances = instances.collect();
    Case { subset: "s".to_owned(), id: "s---1".to_owned(), schema: raw(schema), instances }
}

#[track_caller]
fn check(schema: &str, valid: &[&str], invalid: &[&str], expected: Option<(&str, &str)>) {
    let verdict = judge(&case(schema, valid, invalid), 1, &Plain);
    let expected = expected.map(|(reason, example)| (reason.to_owned(), example.to_owned()));
    assert_eq!(verdict.trouble(), expected);
    assert_eq!(verdict.passes(), expected.is_none());
}

#[test]
fn a_schema_passes_only_where_all_is_right() {
    let schema =
        r#"{"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}"#;
    check(schema, &[r#"{"a":1.0}"#], &["{}", "[]", r#"{"a":1.5}"#], None);
    check(
        schema,
        &["{}"],
        &[],
        Some(("rejects valid", r#"it: /arguments: expected `"a": `, found }"#)),
    );
    let taken = r#"it: {"name": "f", "arguments": {"a": 1}}"#;
    check(schema, &[], &[r#"{"a":1}"#], Some(("accepts invalid", taken)));
    let refused = "refused: \"disallow\" is not supported";
    check(r##"{"type": "object", "disallow": "#x"}"##, &[], &[], Some((refused, "")));
}

#[test]
fn percentiles_are_the_nearest_rank() {
    let list = |n: u64| (1..=n).map(|ms| (Duration::from_millis(ms), "x")).collect();
    let ms = Duration::from_millis;
    assert_eq!(table::times(list(1)), Some((ms(1), ms(1), ms(1), "x")));
    assert_eq!(table::times(list(4)), Some((ms(2), ms(4), ms(4), "x")));
    assert_eq!(table::times(list(200)), Some((ms(100), ms(198), ms(200), "x")));
    assert_eq!(table::times(Vec::new()), None);
}

/// The folder of the shared data; `None`, and told so, where it is missing.
pub(crate) fn shared(folder: &str) -> Option<std::path::PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data").join(folder);
    if path.is_dir() {
        return Some(path);
    }
    // Seen with `--nocapture`, and in the output of a run where something else fails.
    let _ = writeln!(std::io::stderr(), "skipped: there is no {}", path.display());
    None
}

/// The whole measurement says more; this finds what must never be.
#[test]
fn no_schema_of_a_sample_is_judged_wrong() {
    let Some(folder) = shared("jsonschema/maskbench") else { return };
    let mut n_compiled = 0;
    for file in cases::files(&folder, ".dev.jsonl.gz").unwrap() {
        let all = cases::of_file(&file).unwrap();
        for case in Random::new(3).sample(all, 15) {
            let verdict = judge(&case, 7, &Plain);
            match verdict.result {
                Compiled::Refused(_) => {}
                Compiled::Crashed(reason) => panic!("{}: {reason}", case.id),
                Compiled::Grammar(judged) => {
                    n_compiled += 1;
                    assert!(judged.accepts_invalid.is_empty(), "{}: {judged:?}", case.id);
                    assert!(judged.bad_walks.is_empty(), "{}: {judged:?}", case.id);
                }
            }
        }
    }
    assert!(n_compiled > 0);
}
