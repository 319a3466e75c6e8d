//! The length of a grammar in a line and the grammar in, `ok` or why not in a line out.

use std::io::{BufRead, Read, Write};
use std::path::PathBuf;

use anyhow::Context;
use call_me_maybe::engine::llama::Vocabulary;

fn main() -> anyhow::Result<()> {
    let path = std::env::var_os("CALLME_FUZZ_VOCAB").context("CALLME_FUZZ_VOCAB is not set")?;
    let vocabulary = Vocabulary::load(&PathBuf::from(path))?;
    let mut input = std::io::stdin().lock();
    let mut line = String::new();
    while input.read_line(&mut line)? > 0 {
        let mut grammar = vec![0; line.trim_end().parse()?];
        input.read_exact(&mut grammar)?;
        let answer = match vocabulary.gate(&String::from_utf8(grammar)?) {
            Ok(_) => "ok".to_owned(),
            Err(error) => error.to_string().escape_debug().to_string(),
        };
        let mut out = std::io::stdout().lock();
        writeln!(out, "{answer}")?;
        out.flush()?;
        line.clear();
    }
    Ok(())
}
