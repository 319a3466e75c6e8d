//! Real signals, sent to a process of the test's own: this program once more, told by a variable.

use std::process::Command;

use call_me_maybe::interrupt::{Interrupt, Signal};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::low_level::raise;

const VARIABLE: &str = "CALLME_TEST_SIGNALS";

/// What the process does that the variable tells: signals by name, the first of them heard.
fn receive(names: &str) {
    let interrupt = Interrupt::listen().unwrap();
    assert_eq!(interrupt.signal(), None);
    for (index, name) in names.split(' ').enumerate() {
        let (number, signal) = match name {
            "INT" => (SIGINT, Signal::Interrupt),
            _ => (SIGTERM, Signal::Terminate),
        };
        raise(number).unwrap();
        assert_eq!(index, 0, "the second signal leaves");
        assert_eq!(interrupt.clone().signal(), Some(signal));
    }
}

#[test]
fn the_first_signal_is_heard_and_the_second_leaves_at_once() {
    if let Ok(names) = std::env::var(VARIABLE) {
        receive(&names);
        return;
    }
    for (names, status) in
        [("INT", 0), ("TERM", 0), ("INT INT", 130), ("TERM TERM", 143), ("TERM INT", 130)]
    {
        let output = Command::new(std::env::current_exe().unwrap())
            .env(VARIABLE, names)
            .args(["--exact", "interrupt::the_first_signal_is_heard_and_the_second_leaves_at_once"])
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(status), "{names}: {output:?}");
    }
}
