//! Which tokens of a vocabulary may come next.
//!
//! Tokens stand in a trie, so that tokens with a common beginning share its steps. What a state
//! does with the trie as long as no call begins or ends depends on nothing but the state; it is
//! computed once and kept: the tokens that are taken, and the places at which a token leaves the
//! state's part. From these on the walk goes under the stack of the moment.
//!
//! Inside a string nearly all tokens are taken. Those of up to `SAFE_CHARS` characters that are
//! neither quotes, backslashes nor controls are known before: where a state takes any text of such
//! characters, only the others are walked.
//!
//! **Invariant:** a mask has a token's bit exactly if the recognizer accepts the token's bytes;
//! a token without bytes is in no mask.
//! **Invariant:** what is kept is bounded: `KEPT_BYTES` for states and `KEPT_MASKS` whole masks
//! for each compiled grammar.

use std::sync::{Arc, Mutex, PoisonError};

use regex_syntax::utf8::Utf8Sequences;
use rustc_hash::FxHashMap;

use super::automaton::{Automaton, DEAD, StateId};
use super::position::{Position, Thread};

/// Most characters of a token that counts as safe.
const SAFE_CHARS: usize = 16;
/// About as much memory as the states of one grammar may take.
const KEPT_BYTES: usize = 16 << 20;
/// Whole masks kept for one grammar.
const KEPT_MASKS: usize = 32;
/// States in which a text of safe characters may be, so that the others are left out.
const SAFE_STATES: usize = 64;

const NONE: u32 = u32::MAX;

/// The tokens of a vocabulary by their bytes; built once for each vocabulary, copied at no cost.
///
/// ```
/// use call_me_maybe::grammar::recognize::{Recognizer, mask::TokenTrie};
/// use call_me_maybe::grammar::{Expr, Grammar, Rule, RuleName};
///
/// let root = Rule::new(RuleName::root(), Expr::literal("yes").or(Expr::literal("no")));
/// let text = Recognizer::new(&Grammar::new(vec![root])?)?;
/// let trie = TokenTrie::new([(0, &b"no"[..]), (1, b"nobody"), (2, b"y"), (3, b"ye")]);
/// assert_eq!(text.mask(&trie).iter().collect::<Vec<u32>>(), [0, 2, 3]);
/// # Ok::<(), call_me_maybe::grammar::GrammarError>(())
/// ```
#[derive(Debug, Clone)]
pub struct TokenTrie(Arc<Tries>);

#[derive(Debug)]
struct Tries {
    /// All tokens.
    whole: Trie,
    /// Those that are not safe.
    others: Trie,
    safe: TokenMask,
    /// Ids of tokens with the same bytes, the next of each.
    same: Vec<u32>,
}

/// Nodes in the order of a walk that goes down first; the root has none.
#[derive(Debug, Default)]
struct Trie(Vec<Node>);

#[derive(Debug)]
struct Node {
    /// The first node that is not below this one.
    end: u32,
    /// The token that ends here, or [`NONE`].
    token: u32,
    /// How many bytes lead here.
    depth: u32,
    byte: u8,
}

impl TokenTrie {
    /// Sorts the tokens; those without bytes are left out.
    #[must_use]
    pub fn new<'a>(tokens: impl IntoIterator<Item = (u32, &'a [u8])>) -> Self {
        let mut tokens: Vec<(u32, &[u8])> = tokens.into_iter().collect();
        tokens.retain(|(_, bytes)| !bytes.is_empty());
        tokens.sort_unstable_by(|(a, x), (b, y)| x.cmp(y).then(a.cmp(b)));
        let n_ids = tokens.iter().map(|(id, _)| *id as usize + 1).max().unwrap_or(0);
        let mut next_same = vec![NONE; n_ids];
        for pair in tokens.windows(2) {
            if pair[0].1 == pair[1].1 {
                next_same[pair[0].0 as usize] = pair[1].0;
            }
        }
        tokens.dedup_by_key(|(_, bytes)| *bytes);
        let mut safe = TokenMask::default();
        let mut others = Vec::new();
        for (id, bytes) in &tokens {
            if is_safe(bytes) {
                insert_all(&mut safe, *id, &next_same);
            } else {
                others.push((*id, *bytes));
            }
        }
        Self(Arc::new(Tries {
            whole: Trie::new(&tokens),
            others: Trie::new(&others),
            safe,
            same: next_same,
        }))
    }
}

/// Whether a token is nothing but a few characters that every free string may have.
fn is_safe(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes)
        .is_ok_and(|text| text.chars().all(is_safe_char) && text.chars().count() <= SAFE_CHARS)
}

fn is_safe_char(c: char) -> bool {
    !matches!(c, '"' | '\\' | '\u{7f}') && c >= ' '
}

impl Trie {
    /// Of sorted tokens, no two with the same bytes.
    fn new(tokens: &[(u32, &[u8])]) -> Self {
        let mut nodes: Vec<Node> = Vec::new();
        let mut path: Vec<usize> = Vec::new();
        let mut before: &[u8] = &[];
        let index = |n: usize| u32::try_from(n).unwrap_or(NONE);
        for (id, bytes) in tokens {
            let shared = before.iter().zip(*bytes).take_while(|(a, b)| a == b).count();
            for node in path.drain(shared..) {
                nodes[node].end = index(nodes.len());
            }
            for (depth, byte) in bytes.iter().enumerate().skip(shared) {
                path.push(nodes.len());
                nodes.push(Node { end: 0, token: NONE, depth: index(depth + 1), byte: *byte });
            }
            if let Some(last) = nodes.last_mut() {
                last.token = *id;
            }
            before = bytes;
        }
        let n_nodes = index(nodes.len());
        for node in path {
            nodes[node].end = n_nodes;
        }
        Self(nodes)
    }
}

/// A set of tokens, one bit each by id.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TokenMask(Vec<u64>);

impl TokenMask {
    /// Whether the token is in the set.
    #[must_use]
    pub fn contains(&self, id: u32) -> bool {
        self.0.get(id as usize / 64).is_some_and(|word| word >> (id % 64) & 1 == 1)
    }

    /// How many tokens are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether no token is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    /// The ids in rising order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.iter().zip((0..).step_by(64)).flat_map(|(word, first)| {
            let mut left = *word;
            std::iter::from_fn(move || {
                let bit = left.trailing_zeros();
                left &= left.wrapping_sub(1);
                (bit < 64).then_some(first + bit)
            })
        })
    }

    fn insert(&mut self, id: u32) {
        let word = id as usize / 64;
        if word >= self.0.len() {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << (id % 64);
    }

    fn extend(&mut self, other: &Self) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        self.0.iter_mut().zip(&other.0).for_each(|(word, other)| *word |= other);
    }

    fn clear(&mut self, n_ids: usize) {
        self.0.clear();
        self.0.resize(n_ids.div_ceil(64), 0);
    }
}

fn insert_all(mask: &mut TokenMask, id: u32, same: &[u32]) {
    let mut next = id;
    while next != NONE {
        mask.insert(next);
        next = same[next as usize];
    }
}

/// What was computed for one compiled grammar.
#[derive(Debug, Default)]
pub(super) struct MaskCache(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    /// The vocabulary that all of it is for.
    trie: Option<TokenTrie>,
    scans: FxHashMap<StateId, Arc<Scan>>,
    n_bytes: usize,
    /// Whole masks, the latest last.
    masks: Vec<(Position, Arc<TokenMask>)>,
}

/// What a state does with a trie while no call begins or ends.
#[derive(Debug, Default)]
struct Scan {
    taken: Taken,
    /// Nodes at which a token goes on outside: of the trie without the safe tokens or not.
    leaves: Vec<(u32, StateId)>,
    without_safe: bool,
}

#[derive(Debug)]
enum Taken {
    Few(Vec<u32>),
    Many(TokenMask),
}

impl Default for Taken {
    fn default() -> Self {
        Self::Few(Vec::new())
    }
}

impl Scan {
    fn n_bytes(&self) -> usize {
        let taken = match &self.taken {
            Taken::Few(ids) => ids.len() * 4,
            Taken::Many(mask) => mask.0.len() * 8,
        };
        // And about as much for the entry itself.
        taken + self.leaves.len() * 8 + 128
    }
}

/// Sets the bits of all tokens that may come next.
pub(super) fn fill(
    cache: &MaskCache,
    automaton: &Automaton,
    position: &Position,
    trie: &TokenTrie,
    mask: &mut TokenMask,
) {
    if let Some(known) = cache.with(trie, |kept| kept.mask(position)) {
        mask.0.clone_from(&known.0);
        return;
    }
    let tries = &*trie.0;
    mask.clear(tries.same.len());
    for thread in &position.threads {
        let known = cache.with(trie, |kept| kept.scans.get(&thread.state).cloned());
        let scan = known.unwrap_or_else(|| {
            let scan = Arc::new(scan_all(automaton, thread.state, tries));
            cache.with(trie, |kept| kept.keep_scan(thread.state, Arc::clone(&scan)));
            scan
        });
        match &scan.taken {
            Taken::Few(ids) => ids.iter().for_each(|id| insert_all(mask, *id, &tries.same)),
            Taken::Many(taken) => mask.extend(taken),
        }
        let walked = if scan.without_safe { &tries.others } else { &tries.whole };
        for (node, state) in &scan.leaves {
            walk_on(automaton, walked, *node, *state, thread, &tries.same, mask);
        }
    }
    cache.with(trie, |kept| kept.keep_mask(position, mask));
}

impl MaskCache {
    /// Does something with what is kept for this vocabulary.
    fn with<T>(&self, trie: &TokenTrie, what: impl FnOnce(&mut Kept) -> T) -> T {
        // A panic elsewhere leaves what is kept incomplete at worst, never wrong.
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.trie.as_ref().is_none_or(|of| !Arc::ptr_eq(&of.0, &trie.0)) {
            *kept = Kept { trie: Some(trie.clone()), ..Kept::default() };
        }
        what(&mut kept)
    }
}

impl Kept {
    fn mask(&self, position: &Position) -> Option<Arc<TokenMask>> {
        let known = self.masks.iter().rev().find(|(of, _)| of == position);
        known.map(|(_, mask)| Arc::clone(mask))
    }

    fn keep_mask(&mut self, position: &Position, mask: &TokenMask) {
        if self.masks.len() == KEPT_MASKS {
            self.masks.remove(0);
        }
        self.masks.push((position.clone(), Arc::new(mask.clone())));
    }

    fn keep_scan(&mut self, state: StateId, scan: Arc<Scan>) {
        let n_bytes = scan.n_bytes();
        // Which states will be met again cannot be known; those in use come back soon.
        if self.n_bytes + n_bytes > KEPT_BYTES {
            self.scans.clear();
            self.n_bytes = 0;
        }
        self.n_bytes += n_bytes;
        self.scans.insert(state, scan);
    }
}

fn scan_all(automaton: &Automaton, state: StateId, tries: &Tries) -> Scan {
    let without_safe = takes_all_safe(automaton, state);
    let trie = if without_safe { &tries.others } else { &tries.whole };
    let mut scan = Scan { without_safe, ..Scan::default() };
    let mut ids = Vec::new();
    let all = 0..trie.0.len();
    scan_range(automaton, trie, all, 0, state, &mut |id| ids.push(id), &mut scan.leaves);
    // A mask takes a bit for each token.
    scan.taken = if without_safe || ids.len() * 32 > tries.same.len() {
        let mut mask = if without_safe { tries.safe.clone() } else { TokenMask::default() };
        for id in ids {
            insert_all(&mut mask, id, &tries.same);
        }
        Taken::Many(mask)
    } else {
        Taken::Few(ids)
    };
    scan
}

/// Walks nodes that lie below one at `depth`, from a state: the tokens that are taken, and the
/// nodes at which they leave the plain states.
fn scan_range(
    automaton: &Automaton,
    trie: &Trie,
    range: std::ops::Range<usize>,
    depth: usize,
    state: StateId,
    taken: &mut impl FnMut(u32),
    leaves: &mut Vec<(u32, StateId)>,
) {
    // The states after the bytes that lead to the current node.
    let mut states = vec![state];
    let mut at = range.start;
    while at < range.end {
        let node = &trie.0[at];
        let level = node.depth as usize - depth;
        states.truncate(level);
        let next = automaton.next(states[level - 1], node.byte);
        if next == DEAD {
            at = node.end as usize;
            continue;
        }
        if node.token != NONE {
            taken(node.token);
        }
        if next < automaton.n_plain {
            states.push(next);
            at += 1;
        } else {
            let end = node.end as usize;
            if end > at + 1 {
                leaves.push((u32::try_from(at).unwrap_or(NONE), next));
            }
            at = end;
        }
    }
}

/// Goes on below a node at which a thread came to a state that is not plain.
fn walk_on(
    automaton: &Automaton,
    trie: &Trie,
    node: u32,
    state: StateId,
    thread: &Thread,
    same: &[u32],
    mask: &mut TokenMask,
) {
    let mut open = vec![(node, state, thread.stack.clone())];
    let mut leaves = Vec::new();
    while let Some((index, state, stack)) = open.pop() {
        let node = &trie.0[index as usize];
        let mut position = Position::default();
        position.enter(automaton, state, stack);
        // Each thread alone: a token is taken if one of them takes it.
        for thread in position.threads {
            let range = index as usize + 1..node.end as usize;
            let mut taken = |id| insert_all(mask, id, same);
            let depth = node.depth as usize;
            scan_range(automaton, trie, range, depth, thread.state, &mut taken, &mut leaves);
            open.extend(leaves.drain(..).map(|(node, state)| (node, state, thread.stack.clone())));
        }
    }
}

/// Whether the state takes any text of at most [`SAFE_CHARS`] safe characters, and stays plain.
fn takes_all_safe(automaton: &Automaton, state: StateId) -> bool {
    let mut seen = vec![state];
    let mut done = 0;
    for _ in 0..SAFE_CHARS {
        let end = seen.len();
        for index in done..end {
            if !after_safe_char(automaton, seen[index], &mut seen) || seen.len() > SAFE_STATES {
                return false;
            }
        }
        done = end;
        if seen.len() == done {
            break;
        }
    }
    true
}

/// Adds the states after one safe character; `false` where one is refused or not plain.
fn after_safe_char(automaton: &Automaton, state: StateId, after: &mut Vec<StateId>) -> bool {
    let safe = [(' ', '!'), ('#', '['), (']', '~'), ('\u{80}', char::MAX)];
    for sequence in safe.iter().flat_map(|(first, last)| Utf8Sequences::new(*first, *last)) {
        let mut states = vec![state];
        for range in sequence.as_slice() {
            let mut next = Vec::new();
            for state in &states {
                for byte in range.start..=range.end {
                    let to = automaton.next(*state, byte);
                    if to >= automaton.n_plain {
                        return false;
                    }
                    if !next.contains(&to) {
                        next.push(to);
                    }
                }
            }
            states = next;
        }
        for state in states {
            if !after.contains(&state) {
                after.push(state);
            }
        }
    }
    true
}
