//! Where a text stands, as a key: equal places lead on in the same ways.

use super::{Recognizer, StateId, Thread};

/// Where a text stands in its grammar; of use only beside others of the same [`Recognizer`].
///
/// Equal places lead on in the same ways. The reverse does not hold: a grammar may say one thing
/// twice.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Place {
    /// Each way to read the text: its state, then the states to return to.
    threads: Vec<Vec<StateId>>,
    whole: bool,
}

impl Recognizer {
    /// The place of the text so far.
    #[must_use]
    pub fn place(&self) -> Place {
        let mut threads: Vec<_> = self.position.threads.iter().map(states).collect();
        threads.sort_unstable();
        Place { threads, whole: self.position.whole }
    }
}

fn states(thread: &Thread) -> Vec<StateId> {
    let mut states = vec![thread.state];
    let mut frame = &thread.stack.0;
    while let Some(call) = frame {
        states.push(call.back);
        frame = &call.below.0;
    }
    states
}
