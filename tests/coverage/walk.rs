//! A grammar of calls to a text of it, by chance.
//!
//! The choices lean towards the end: the longer the text, the rather what closes a string, a number
//! or a container. No object gets a key twice, as no schema says that it must not, and the
//! grammar cannot.

use std::collections::HashSet;

use call_me_maybe::grammar::recognize::Recognizer;

use super::cases::Random;

/// A walk that has not ended by then is given up.
const MAX_BYTES: usize = 50_000;
/// Times that a walk goes back before a repeated key.
const MAX_RETRIES: usize = 200;

/// Walks from the start to the end of a text: at most about `n_free` bytes by chance, then what
/// closes it. `None` where the walk found no end.
pub(crate) fn walk(start: &Recognizer, random: &mut Random, n_free: usize) -> Option<Vec<u8>> {
    let mut state = State { at: start.clone(), text: Vec::new(), json: Json::default() };
    // Where the latest member began, to choose anew.
    let mut before_member: Vec<State> = Vec::new();
    let mut n_retries = 0;
    while !state.at.is_over() {
        let late = state.text.len() >= n_free;
        if late && state.at.can_end() {
            break;
        }
        if state.text.len() > MAX_BYTES {
            return None;
        }
        let bytes = match state.at.forced() {
            forced if !forced.is_empty() => forced,
            _ => vec![choose(&state.at, random, state.text.len(), n_free, n_retries)?],
        };
        for byte in bytes {
            if state.json.at_boundary(byte) {
                before_member.truncate(state.json.depth());
                before_member.push(state.clone());
            }
            if !state.at.push(byte) {
                return None;
            }
            state.text.push(byte);
            if !state.json.push(byte) {
                n_retries += 1;
                if n_retries > MAX_RETRIES {
                    return None;
                }
                state = before_member.last()?.clone();
                // Whatever leads to another member may only lead to the same one.
                if n_retries % 4 == 0 && state.at.allowed().contains(b'}') {
                    state.at.push(b'}');
                    state.text.push(b'}');
                    state.json.push(b'}');
                }
                break;
            }
        }
    }
    Some(state.text)
}

#[derive(Clone)]
struct State {
    at: Recognizer,
    text: Vec<u8>,
    json: Json,
}

fn choose(
    at: &Recognizer,
    random: &mut Random,
    len: usize,
    n_free: usize,
    n_retries: usize,
) -> Option<u8> {
    let allowed: Vec<u8> = at.allowed().iter().collect();
    if len >= n_free + n_retries * 8 {
        if let Some(byte) = at.closing().first() {
            return Some(*byte);
        }
        let last = b"}]\"".iter().find(|byte| allowed.contains(byte));
        if let Some(byte) = last {
            return Some(*byte);
        }
    }
    let some = |wanted: &[u8]| -> Vec<u8> {
        allowed.iter().copied().filter(|byte| wanted.contains(byte)).collect()
    };
    let ends = if random.once_in(3) { some(b"\"}]") } else { some(b"\"}],:") };
    let printable: Vec<u8> =
        allowed.iter().copied().filter(|byte| matches!(byte, b' '..=b'~')).collect();
    let from = if !ends.is_empty() && random.once_in(3) {
        &ends
    } else if !printable.is_empty() && !random.once_in(12) {
        &printable
    } else {
        &allowed
    };
    (!from.is_empty()).then(|| from[random.below(from.len())])
}

/// As much of JSON as tells keys.
#[derive(Clone, Default)]
struct Json {
    /// The keys of each open object; `None` for an array.
    open: Vec<Option<HashSet<Vec<u8>>>>,
    /// The string that is being written.
    string: Option<Vec<u8>>,
    escaped: bool,
    /// The next string is a key.
    key_next: bool,
}

impl Json {
    fn depth(&self) -> usize {
        self.open.iter().filter(|keys| keys.is_some()).count().saturating_sub(1)
    }

    /// Whether the byte begins or ends what may be a member.
    fn at_boundary(&self, byte: u8) -> bool {
        self.string.is_none()
            && matches!(self.open.last(), Some(Some(_)))
            && (byte == b',' || (byte == b'"' && self.key_next && self.last_is_empty()))
    }

    fn last_is_empty(&self) -> bool {
        matches!(self.open.last(), Some(Some(keys)) if keys.is_empty())
    }

    /// Takes a byte; `false` where it ends a key that the object has already.
    fn push(&mut self, byte: u8) -> bool {
        if let Some(string) = &mut self.string {
            if byte == b'"' && !self.escaped {
                let string = self.string.take().unwrap_or_default();
                if std::mem::take(&mut self.key_next) {
                    if let Some(Some(keys)) = self.open.last_mut() {
                        return keys.insert(decoded(string));
                    }
                }
                return true;
            }
            self.escaped = byte == b'\\' && !self.escaped;
            string.push(byte);
            return true;
        }
        match byte {
            b'"' => (self.string, self.escaped) = (Some(Vec::new()), false),
            b'{' => {
                self.open.push(Some(HashSet::new()));
                self.key_next = true;
            }
            b'[' => {
                self.open.push(None);
                self.key_next = false;
            }
            b'}' | b']' => {
                self.open.pop();
                self.key_next = false;
            }
            b',' => self.key_next = matches!(self.open.last(), Some(Some(_))),
            _ => {}
        }
        true
    }
}

/// What the key says, as two spellings may say the same.
fn decoded(key: Vec<u8>) -> Vec<u8> {
    let quoted = [b"\"", key.as_slice(), b"\""].concat();
    serde_json::from_slice::<String>(&quoted).map_or(key, String::into_bytes)
}
