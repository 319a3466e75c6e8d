//! What holds for the repository as a whole: the order of the modules, words, file sizes.

use std::fs;
use std::path::{Path, PathBuf};

/// Largest file that may be committed.
const FILE_SIZE_LIMIT_BYTES: u64 = 3_000_000;

/// Every file of the repository that git would take: its path from the root, with `/`.
fn files() -> Vec<String> {
    fn walk(folder: &Path, root: &Path, found: &mut Vec<String>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(root).unwrap().to_str().unwrap().replace('\\', "/");
            // As in .gitignore, and what belongs to git or to an editor.
            let ignored = name.starts_with("target")
                || ["models/test", "data/output"].contains(&name.as_str())
                || name.ends_with("__pycache__")
                || [".gguf", ".part"].iter().any(|end| name.ends_with(end))
                || (name.starts_with('.') && ![".ci", ".cargo"].contains(&name.as_str()) && {
                    !name.contains('/')
                });
            if ignored {
                continue;
            }
            if path.is_dir() {
                walk(&path, root, found);
            } else {
                found.push(name);
            }
        }
    }
    let root = root();
    let mut found = Vec::new();
    walk(&root, &root, &mut found);
    assert!(found.iter().any(|name| name == "src/lib.rs"), "no sources in {}", root.display());
    found
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The text of a file; `None` where it is none.
fn text(name: &str) -> Option<String> {
    String::from_utf8(fs::read(root().join(name)).unwrap()).ok()
}

/// The sources of the library: `(module path, text)`, where `src/grammar/lower.rs` is `grammar::lower`.
fn modules() -> Vec<(String, String)> {
    let files = files().into_iter();
    files
        .filter_map(|name| {
            let module = name.strip_prefix("src/")?.strip_suffix(".rs")?.replace('/', "::");
            (module != "lib" && module != "main").then(|| (module, text(&name).unwrap()))
        })
        .collect()
}

/// The code of a source before its unit tests, without comments; a line of the file stays a line.
fn code(text: &str) -> String {
    let before_tests = text.split("#[cfg(test)]").next().unwrap_or_default();
    let lines = before_tests.lines().map(|line| {
        let line = if line.trim_start().starts_with("//") { "" } else { line };
        line.split(" // ").next().unwrap_or_default()
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The modules that a source declares, in its order.
fn declared(text: &str) -> Vec<String> {
    let names = text.lines().filter_map(|line| {
        let line = line.trim_start_matches("pub ").trim_start_matches("pub(crate) ");
        Some(line.strip_prefix("mod ")?.strip_suffix(';')?.to_owned())
    });
    names.collect()
}

/// Every module in reading order: a module comes before its children, and these in the order of their `mod` lines.
fn reading_order() -> Vec<String> {
    fn add(module: &str, order: &mut Vec<String>) {
        order.push(module.to_owned());
        let file = format!("src/{}.rs", module.replace("::", "/"));
        for child in declared(&text(&file).unwrap()) {
            add(&format!("{module}::{child}"), order);
        }
    }
    let mut order = Vec::new();
    for module in declared(&text("src/lib.rs").unwrap()) {
        add(&module, &mut order);
    }
    order
}

/// The modules of `order` that `code`, which is that of `module`, names by a path from the crate's root,
/// within braces too (`crate::{a::b, c}`), or by `super::`.
fn used(module: &str, code: &str, order: &[String]) -> Vec<String> {
    let parent = module.rsplit_once("::").map_or("", |(parent, _)| parent);
    let mut found = Vec::new();
    for (start, base) in [("crate::", ""), ("super::", parent)] {
        for (at, _) in code.match_indices(start) {
            if code[..at].ends_with(|before: char| before.is_alphanumeric() || before == ':') {
                continue;
            }
            paths(&code[at + start.len()..], base, &mut found);
        }
    }
    let longest = |path: &String| {
        let inside =
            |module: &&String| *path == **module || path.starts_with(&format!("{module}::"));
        order.iter().filter(inside).max_by_key(|module| module.len()).cloned()
    };
    let mut used: Vec<String> = found.iter().filter_map(longest).collect();
    used.sort();
    used.dedup();
    used
}

/// Adds every path that the tree at the beginning of `text` spells, each behind `base`; returns what follows it.
fn paths<'a>(text: &'a str, base: &str, found: &mut Vec<String>) -> &'a str {
    let mut rest = text.trim_start();
    let mut path = base.to_owned();
    loop {
        if let Some(mut inside) = rest.strip_prefix('{') {
            loop {
                inside = paths(inside, &path, found).trim_start();
                match inside.strip_prefix(',') {
                    Some(next) if !next.trim_start().starts_with('}') => inside = next,
                    Some(next) => inside = next.trim_start(),
                    None => return inside.strip_prefix('}').unwrap_or(""),
                }
                if let Some(end) = inside.strip_prefix('}') {
                    return end;
                }
            }
        }
        let is_name = |c: char| c.is_alphanumeric() || c == '_' || c == '*';
        let end = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
        if !path.is_empty() && end > 0 {
            path.push_str("::");
        }
        path.push_str(&rest[..end]);
        rest = &rest[end..];
        match rest.strip_prefix("::") {
            Some(next) => rest = next,
            None => break,
        }
    }
    found.push(path);
    rest.strip_prefix(" as ")
        .map_or(rest, |alias| alias.trim_start_matches(|c: char| c.is_alphanumeric() || c == '_'))
}

#[test]
fn the_reader_of_use_trees_sees_every_path() {
    let order = ["a", "a::b", "a::c", "d", "e"].map(str::to_owned);
    let check = |module: &str, code: &str, expected: &[&str]| {
        assert_eq!(used(module, code, &order), expected, "{code}");
    };
    check("d", "use crate::a::b::Name;", &["a::b"]);
    check("d", "use crate::{a::{b, c::Other as X}, e};", &["a::b", "a::c", "e"]);
    check(
        "d",
        "use crate::{\n    a::{self, b::{Name, Second},},\n    e::Third,\n};",
        &["a", "a::b", "e"],
    );
    check("a::b", "use super::c::Name; let x = super::Own;", &["a", "a::c"]);
    check("d", "let x = crate::e::run();", &["e"]);
    check("d", "other_crate::e::run(); $crate::e!();", &["e"]);
    check("d", "use serde::Deserialize;", &[]);
}

#[test]
fn a_module_uses_only_modules_above_it() {
    let order = reading_order();
    let place = |module: &str| order.iter().position(|other| other == module);
    let mut wrong = Vec::new();
    for (module, text) in modules() {
        let Some(own) = place(&module) else {
            wrong.push(format!("{module} is not declared in lib.rs's tree"));
            continue;
        };
        for other in used(&module, &code(&text), &order) {
            // A module may hand on what its own children have.
            let is_child = other.starts_with(&format!("{module}::"));
            if place(&other) > Some(own) && !is_child {
                wrong.push(format!("{module} uses {other}, which comes after it"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_module_has_a_name_that_says_nothing() {
    let empty = ["utils", "util", "helpers", "common", "types", "prelude", "misc"];
    for (module, _) in modules() {
        let name = module.rsplit("::").next().unwrap_or_default();
        assert!(!empty.contains(&name), "src/{}.rs", module.replace("::", "/"));
    }
}

#[test]
fn one_module_names_the_bindings() {
    for (module, text) in modules() {
        let names = ["llama_cpp_2", "llama_cpp_sys_2"].iter().any(|name| text.contains(name));
        assert!(
            !names || module.starts_with("engine::llama"),
            "{module} names llama.cpp's bindings"
        );
    }
}

#[test]
fn no_glob_of_the_parent_outside_tests() {
    for (module, text) in modules() {
        assert!(!code(&text).contains("super::*"), "{module}");
    }
}

#[test]
fn no_forbidden_word() {
    // Split, so that this file does not hold them itself.
    let everywhere = [
        // Paths of one machine.
        concat!("/wo", "rk/"),
        concat!("/ro", "ot/"),
        concat!("/ho", "me/"),
        concat!("/tm", "p/wt"),
        concat!("/Us", "ers/"),
        // Hosts of package registries: the ordinary clients know them.
        concat!("crates", ".io/"),
        concat!("pypi", ".org"),
        concat!("pythonhosted", ".org"),
        concat!("registry.npm", "js"),
        concat!("deb.debi", "an.org"),
        // Marks of unfinished work.
        concat!("TO", "DO"),
        concat!("FIX", "ME"),
        // What a text was written with is not its subject.
        concat!("Clau", "de"),
        concat!("Anthro", "pic"),
        concat!("Chat", "GPT"),
        concat!("Copi", "lot"),
    ];
    // Words that HOUSE_STYLE's table replaces, and British spelling, which is for prose alone.
    let in_code = [
        concat!("non", "terminal"),
        concat!("lex", "eme"),
        concat!("token", "ise"),
        concat!("normal", "ise"),
        concat!("serial", "ise"),
        concat!("recogn", "ise"),
        concat!("quant", "isation"),
        concat!("col", "our"),
    ];
    let mut wrong = Vec::new();
    for name in files() {
        // Names and hashes that others chose; test cases quote all kinds of text.
        if name == "Cargo.lock" || name.contains("golden/") {
            continue;
        }
        let Some(text) = text(&name) else { continue };
        for (i, line) in text.lines().enumerate() {
            for word in everywhere.iter().filter(|word| line.contains(**word)) {
                wrong.push(format!("{name}:{}: {word}", i + 1));
            }
        }
    }
    for (module, text) in modules() {
        for (i, line) in code(&text).lines().enumerate() {
            // Identifiers only: what stands between quotes is prose.
            let outside = line.split('"').step_by(2).collect::<String>().to_lowercase();
            for word in in_code.iter().filter(|word| outside.contains(**word)) {
                // The drawing's library calls a reference to a rule so.
                if module == "grammar::draw::node" && *word == in_code[0] {
                    continue;
                }
                wrong.push(format!("{module}, line {}: {word}", i + 1));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_large_file() {
    for name in files() {
        let size = fs::metadata(root().join(&name)).unwrap().len();
        assert!(size <= FILE_SIZE_LIMIT_BYTES, "{name} has {size} bytes");
    }
}

#[test]
fn a_folders_readme_is_short() {
    for name in files().iter().filter(|name| name.ends_with("/README.md")) {
        let n_lines = text(name).unwrap().lines().count();
        // That of the configuration has the table of what was tried.
        let limit = if name == "config/README.md" { 60 } else { 15 };
        assert!(n_lines <= limit, "{name} has {n_lines} lines");
    }
}
