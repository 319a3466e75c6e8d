//! llama.cpp in a process of its own, asked whether it loads a grammar.
//!
//! Its own process, because it is built once without sanitizer, and because what it aborts on shall be
//! told from what we crash on.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Mutex;

/// Names the binary `llama` of this crate; nothing is asked where it is not set.
const BINARY: &str = "CALLME_FUZZ_LLAMA";

static LLAMA: Mutex<Option<Llama>> = Mutex::new(None);

struct Llama {
    child: Child,
    grammars: ChildStdin,
    answers: BufReader<ChildStdout>,
}

/// Has llama.cpp load a grammar.
///
/// # Panics
///
/// Where it does not, or ends on it.
pub fn load(gbnf: &str) {
    let Some(binary) = std::env::var_os(BINARY) else { return };
    let mut llama = LLAMA.lock().expect("one thread");
    if llama.is_none() {
        let started = Command::new(binary)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the binary llama starts");
        *llama = Some(Llama::new(started).expect("pipes"));
    }
    let running = llama.as_mut().expect("just started");
    match running.ask(gbnf) {
        Ok(answer) => assert_eq!(answer, "ok", "llama.cpp does not load\n{gbnf}"),
        Err(error) => {
            let ended = running.child.wait();
            *llama = None;
            panic!("llama.cpp ended, {error}, {ended:?}, on\n{gbnf}");
        }
    }
}

impl Llama {
    fn new(mut child: Child) -> Option<Self> {
        let (grammars, answers) = (child.stdin.take()?, BufReader::new(child.stdout.take()?));
        Some(Self { child, grammars, answers })
    }

    fn ask(&mut self, gbnf: &str) -> std::io::Result<String> {
        writeln!(self.grammars, "{}", gbnf.len())?;
        self.grammars.write_all(gbnf.as_bytes())?;
        self.grammars.flush()?;
        let mut answer = String::new();
        if self.answers.read_line(&mut answer)? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        Ok(answer.trim_end().to_owned())
    }
}
