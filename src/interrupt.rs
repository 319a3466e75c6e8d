//! Ctrl-C and SIGTERM in, a flag out.
//!
//! **Invariant:** the first signal only sets the flag, so that whoever runs can keep what is
//! finished; a second one leaves at once, with the status that a shell gives for that signal.
//! **Invariant:** nothing is installed before [`Interrupt::listen`]. Call it after the input is
//! read: a read from stdin goes on after a signal that has a handler, and so would not hear it.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

/// Whether a signal has asked the run to end; clones share it.
#[derive(Debug, Clone, Default)]
pub struct Interrupt {
    /// The number of the latest signal, 0 before any.
    signal: Arc<AtomicUsize>,
}

/// A signal that ends the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// SIGINT, which Ctrl-C sends.
    Interrupt,
    /// SIGTERM.
    Terminate,
}

impl Interrupt {
    /// An interrupt that no signal sets; [`Interrupt::set`] does.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes over SIGINT and SIGTERM of this process (Ctrl-C where that is all there is).
    ///
    /// # Errors
    /// What the system says where it lets no handler be installed.
    pub fn listen() -> io::Result<Self> {
        let this = Self::new();
        let seen = Arc::new(AtomicBool::new(false));
        for signal in [Signal::Interrupt, Signal::Terminate] {
            let number = signal.number();
            // Handlers run in the order of their registration: the one that leaves comes first
            // and finds `seen` unset on the first signal.
            flag::register_conditional_shutdown(number, signal.status(), Arc::clone(&seen))?;
            flag::register(number, Arc::clone(&seen))?;
            flag::register_usize(number, Arc::clone(&this.signal), number.unsigned_abs() as usize)?;
        }
        Ok(this)
    }

    /// Whether the run should end.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.signal().is_some()
    }

    /// The signal that came, the latest of several.
    #[must_use]
    pub fn signal(&self) -> Option<Signal> {
        let number = self.signal.load(Ordering::Relaxed);
        [Signal::Interrupt, Signal::Terminate]
            .into_iter()
            .find(|signal| signal.number().unsigned_abs() as usize == number)
    }

    /// Asks the run to end as if `signal` had come.
    pub fn set(&self, signal: Signal) {
        self.signal.store(signal.number().unsigned_abs() as usize, Ordering::Relaxed);
    }
}

impl Signal {
    fn number(self) -> i32 {
        match self {
            Self::Interrupt => SIGINT,
            Self::Terminate => SIGTERM,
        }
    }

    /// The exit status of a run that this signal ended: 130 or 143.
    #[must_use]
    pub fn status(self) -> i32 {
        // SIGINT is 2 and SIGTERM 15 on every system that Rust runs on.
        128 + self.number()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_are_those_of_a_shell() {
        let interrupt = Interrupt::new();
        for (signal, status) in [(Signal::Interrupt, 130), (Signal::Terminate, 143)] {
            interrupt.set(signal);
            assert_eq!(interrupt.signal().map(Signal::status), Some(status));
        }
    }
}
