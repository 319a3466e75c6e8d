//! A [`Grammar`] as one nondeterministic automaton over bytes (Thompson's construction).
//!
//! All rules end in one state, [`END`]: what is used in last place is no call but goes on in the
//! used rule, so right-linear rules become a plain automaton. A rule that is used once, or whose
//! texts are few and short, is written out where it is used.
//!
//! **Invariant:** writing out is bounded: a repetition or a rule that would take too many states is
//! called instead, so the automaton grows with the grammar's text, not with what it multiplies to.
//! **Invariant:** nothing here recurses, whatever the nesting of expressions and rules.

use regex_syntax::utf8::{Utf8Range, Utf8Sequences};
use rustc_hash::FxHashMap;

use crate::grammar::{Class, Expr, Grammar, Repeat, RuleName};

/// A state of the nondeterministic automaton.
pub(super) type NfaId = u32;

/// Where every rule ends.
pub(super) const END: NfaId = 0;

/// States that a rule written out at each of its uses may have.
const SMALL_RULE: u64 = 64;
/// How deep such rules may use each other.
const SMALL_DEPTH: usize = 8;
/// States up to which repetitions are written out in a grammar.
const WRITTEN_OUT: u64 = 1 << 19;
/// States of one repetition that is always written out.
const SMALL_REPEAT: u64 = 1 << 12;

/// A way on from a state.
#[derive(Debug, Clone, Copy)]
pub(super) enum Step {
    /// Without a byte.
    Empty(NfaId),
    /// By a byte of an inclusive range.
    Byte(u8, u8, NfaId),
    /// By a text of a part that is called.
    Call(PartId, NfaId),
}

/// Number of a part of the grammar that is called: a rule, or what is repeated.
pub(super) type PartId = u32;

/// What is called.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) start: NfaId,
    /// The rule that it is.
    pub(super) name: Option<RuleName>,
    /// Whether it is an argument's value.
    pub(super) argument: bool,
}

/// The automaton; part 0 is `root`.
#[derive(Debug, Default)]
pub(super) struct Nfa {
    /// First step of each state in `steps`, each with the next step of the same state.
    heads: Vec<u32>,
    steps: Vec<(Step, u32)>,
    pub(super) parts: Vec<Part>,
}

const NONE: u32 = u32::MAX;

fn id(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(NONE)
}

impl Nfa {
    pub(super) fn len(&self) -> usize {
        self.heads.len()
    }

    pub(super) fn steps(&self, state: NfaId) -> impl Iterator<Item = Step> + '_ {
        let mut next = self.heads[state as usize];
        std::iter::from_fn(move || {
            let (step, after) = *self.steps.get(next as usize)?;
            next = after;
            Some(step)
        })
    }

    fn state(&mut self) -> NfaId {
        self.heads.push(NONE);
        id(self.heads.len() - 1)
    }

    fn add(&mut self, from: NfaId, step: Step) {
        self.steps.push((step, self.heads[from as usize]));
        self.heads[from as usize] = id(self.steps.len() - 1);
    }

    fn part(&mut self, name: Option<RuleName>, argument: bool) -> PartId {
        let start = self.state();
        self.parts.push(Part { start, name, argument });
        id(self.parts.len() - 1)
    }

    /// Leads past each call of a part that may be empty, so that no call need be completed without
    /// a byte.
    fn pass_empty_calls(&mut self) {
        let mut before: Vec<Vec<NfaId>> = vec![Vec::new(); self.len()];
        for state in 0..id(self.len()) {
            for step in self.steps(state) {
                match step {
                    Step::Empty(to) => before[to as usize].push(state),
                    Step::Byte(..) => {}
                    Step::Call(part, to) => {
                        before[to as usize].push(state);
                        before[self.parts[part as usize].start as usize].push(state);
                    }
                }
            }
        }
        // Whether the end is reached without a byte.
        let mut empty = vec![false; self.len()];
        empty[END as usize] = true;
        let mut open = vec![END];
        while let Some(state) = open.pop() {
            for &state in &before[state as usize] {
                let ends = |step| match step {
                    Step::Empty(to) => empty[to as usize],
                    Step::Byte(..) => false,
                    Step::Call(part, to) => {
                        empty[to as usize] && empty[self.parts[part as usize].start as usize]
                    }
                };
                if !empty[state as usize] && self.steps(state).any(ends) {
                    empty[state as usize] = true;
                    open.push(state);
                }
            }
        }
        for state in 0..id(self.len()) {
            let passes: Vec<NfaId> = self
                .steps(state)
                .filter_map(|step| match step {
                    Step::Call(part, to) if empty[self.parts[part as usize].start as usize] => {
                        Some(to)
                    }
                    _ => None,
                })
                .collect();
            for to in passes {
                self.add(state, Step::Empty(to));
            }
        }
    }
}

/// Builds the automaton of a checked grammar.
pub(super) fn build(grammar: &Grammar) -> Nfa {
    let mut builder = Builder::new(grammar);
    builder.nfa.state();
    builder.rule_part(0);
    while let Some(Task { expr, from, to }) = builder.tasks.pop() {
        builder.expand(expr, from, to);
    }
    builder.nfa.pass_empty_calls();
    builder.nfa
}

/// Texts of an expression shall lead from one state to another.
struct Task<'a> {
    expr: &'a Expr,
    from: NfaId,
    to: NfaId,
}

struct Builder<'a> {
    grammar: &'a Grammar,
    rules: FxHashMap<&'a RuleName, usize>,
    /// Whether a rule is written out where it is used.
    inlined: Vec<bool>,
    /// States of each repeated expression.
    sizes: FxHashMap<*const Expr, u64>,
    nfa: Nfa,
    tasks: Vec<Task<'a>>,
    /// Parts of the rules and the repeated expressions that are called.
    rule_parts: FxHashMap<usize, PartId>,
    expr_parts: FxHashMap<*const Expr, PartId>,
    sequences: FxHashMap<*const Class, Vec<regex_syntax::utf8::Utf8Sequence>>,
}

impl<'a> Builder<'a> {
    fn new(grammar: &'a Grammar) -> Self {
        let rules: FxHashMap<&RuleName, usize> =
            grammar.rules().iter().enumerate().map(|(index, rule)| (&rule.name, index)).collect();
        let mut builder = Self {
            grammar,
            inlined: vec![false; rules.len()],
            rules,
            sizes: FxHashMap::default(),
            nfa: Nfa::default(),
            tasks: Vec::new(),
            rule_parts: FxHashMap::default(),
            expr_parts: FxHashMap::default(),
            sequences: FxHashMap::default(),
        };
        builder.choose_inlined();
        builder
    }

    /// Finds the rules that are written out, and the sizes of what is repeated.
    fn choose_inlined(&mut self) {
        let rules = self.grammar.rules();
        // Every expression of a rule, none before one that holds it.
        let mut exprs: Vec<Vec<&Expr>> = Vec::new();
        let mut n_uses = vec![0_usize; rules.len()];
        for rule in rules {
            let mut list = vec![(&rule.expr, false)];
            let mut done = 0;
            while let Some(&(expr, repeated)) = list.get(done) {
                done += 1;
                match expr {
                    Expr::Literal(_) | Expr::Class(_) => {}
                    Expr::Rule(name) => {
                        if let Some(used) = self.rules.get(name) {
                            n_uses[*used] += if repeated { 2 } else { 1 };
                        }
                    }
                    Expr::Concat(parts) | Expr::Choice(parts) => {
                        list.extend(parts.iter().map(|part| (part, repeated)));
                    }
                    // Written out more than once.
                    Expr::Repeat(inner, repeat) => {
                        list.push((inner, repeated || times(*repeat) > 1));
                    }
                }
            }
            exprs.push(list.into_iter().map(|(expr, _)| expr).collect());
        }
        let mut small: Vec<Option<u64>> = vec![None; rules.len()];
        for _ in 0..SMALL_DEPTH {
            let mut found = Vec::new();
            for (index, rule) in rules.iter().enumerate() {
                let is_open = small[index].is_none() && !rule.argument && index > 0;
                // Larger than small, whatever it uses.
                if is_open && exprs[index].len() as u64 <= SMALL_RULE {
                    let size = self.size(&exprs[index], &small, true);
                    found.extend(size.filter(|size| *size <= SMALL_RULE).map(|size| (index, size)));
                }
            }
            if found.is_empty() {
                break;
            }
            for (index, size) in found {
                small[index] = Some(size);
            }
        }
        for (index, rule) in rules.iter().enumerate() {
            let once = index > 0 && !rule.argument && n_uses[index] == 1;
            self.inlined[index] = once || small[index].is_some();
            self.size(&exprs[index], &small, false);
        }
    }

    /// States that a rule's expressions take, written out. With `bounded`, only where its texts are
    /// bounded and all the rules it uses are small.
    fn size(&mut self, exprs: &[&Expr], small: &[Option<u64>], bounded: bool) -> Option<u64> {
        let mut sizes: FxHashMap<*const Expr, u64> = FxHashMap::default();
        let mut last = 0;
        for &expr in exprs.iter().rev() {
            let of = |part: &Expr| sizes.get(&std::ptr::from_ref(part)).copied().unwrap_or(1);
            last = match expr {
                Expr::Literal(text) => text.len() as u64,
                Expr::Class(class) => {
                    let ascii = !class.is_negated()
                        && class.ranges().iter().all(|(_, last)| last.is_ascii());
                    if ascii { 1 } else { 8.max(class.ranges().len() as u64) }
                }
                Expr::Rule(name) => match self.rules.get(name).and_then(|rule| small[*rule]) {
                    Some(size) => size,
                    None if bounded => return None,
                    None => 1,
                },
                Expr::Concat(parts) | Expr::Choice(parts) => {
                    parts.iter().map(of).fold(0, u64::saturating_add)
                }
                Expr::Repeat(_, repeat) if bounded && repeat.max().is_none() => return None,
                Expr::Repeat(inner, repeat) => {
                    let size = of(inner);
                    if !bounded {
                        self.sizes.insert(std::ptr::from_ref(inner), size);
                    }
                    size.saturating_mul(times(*repeat)).max(1)
                }
            };
            sizes.insert(std::ptr::from_ref(expr), last);
        }
        Some(last)
    }

    /// The part that a rule is.
    fn rule_part(&mut self, rule: usize) -> PartId {
        if let Some(part) = self.rule_parts.get(&rule) {
            return *part;
        }
        let grammar = self.grammar;
        let rule_of_part = &grammar.rules()[rule];
        let part = self.nfa.part(Some(rule_of_part.name.clone()), rule_of_part.argument);
        self.rule_parts.insert(rule, part);
        let from = self.nfa.parts[part as usize].start;
        self.tasks.push(Task { expr: &rule_of_part.expr, from, to: END });
        part
    }

    fn call(&mut self, part: PartId, from: NfaId, to: NfaId) {
        let Part { start, argument, .. } = self.nfa.parts[part as usize];
        let step = if to == END && !argument { Step::Empty(start) } else { Step::Call(part, to) };
        self.nfa.add(from, step);
    }

    /// Adds ways by the texts of an expression. They neither enter `from` nor leave `to`, so that
    /// productions can share both.
    fn expand(&mut self, expr: &'a Expr, from: NfaId, to: NfaId) {
        match expr {
            Expr::Literal(text) => {
                let mut at = from;
                for (index, byte) in text.bytes().enumerate() {
                    let next = if index + 1 == text.len() { to } else { self.nfa.state() };
                    self.nfa.add(at, Step::Byte(byte, byte, next));
                    at = next;
                }
            }
            Expr::Class(class) => self.class(class, from, to),
            Expr::Rule(name) => {
                let grammar = self.grammar;
                let Some(&rule) = self.rules.get(name) else { return };
                if self.inlined[rule] {
                    self.tasks.push(Task { expr: &grammar.rules()[rule].expr, from, to });
                } else {
                    let part = self.rule_part(rule);
                    self.call(part, from, to);
                }
            }
            Expr::Concat(parts) if parts.is_empty() => self.nfa.add(from, Step::Empty(to)),
            Expr::Concat(parts) => {
                let mut at = from;
                for (index, expr) in parts.iter().enumerate() {
                    let next = if index + 1 == parts.len() { to } else { self.nfa.state() };
                    self.tasks.push(Task { expr, from: at, to: next });
                    at = next;
                }
            }
            Expr::Choice(parts) => {
                self.tasks.extend(parts.iter().map(|expr| Task { expr, from, to }));
            }
            Expr::Repeat(inner, repeat) => self.repeat(inner, *repeat, from, to),
        }
    }

    fn repeat(&mut self, inner: &'a Expr, repeat: Repeat, from: NfaId, to: NfaId) {
        let size = self.sizes.get(&std::ptr::from_ref(inner)).copied().unwrap_or(1);
        let all = size.saturating_mul(times(repeat));
        let left = WRITTEN_OUT.saturating_sub(self.nfa.len() as u64).max(SMALL_REPEAT);
        let part = (times(repeat) > 1 && all > left).then(|| self.expr_part(inner));
        let once = |this: &mut Self, from, to| match part {
            Some(part) => this.call(part, from, to),
            None => this.tasks.push(Task { expr: inner, from, to }),
        };
        let mut at = from;
        let most = repeat.max().unwrap_or(repeat.min());
        for done in 0..most {
            if done >= repeat.min() {
                self.nfa.add(at, Step::Empty(to));
            }
            let is_last = done + 1 == most && repeat.max().is_some();
            let next = if is_last { to } else { self.nfa.state() };
            once(self, at, next);
            at = next;
        }
        if repeat.max().is_none() {
            let (start, end) = (self.nfa.state(), self.nfa.state());
            self.nfa.add(at, Step::Empty(start));
            once(self, start, end);
            self.nfa.add(end, Step::Empty(start));
            self.nfa.add(start, Step::Empty(to));
        } else if most == 0 {
            self.nfa.add(from, Step::Empty(to));
        }
    }

    /// The part that a repeated expression is.
    fn expr_part(&mut self, expr: &'a Expr) -> PartId {
        if let Some(part) = self.expr_parts.get(&std::ptr::from_ref(expr)) {
            return *part;
        }
        let part = self.nfa.part(None, false);
        self.expr_parts.insert(std::ptr::from_ref(expr), part);
        let from = self.nfa.parts[part as usize].start;
        self.tasks.push(Task { expr, from, to: END });
        part
    }

    fn class(&mut self, class: &'a Class, from: NfaId, to: NfaId) {
        let sequences = self.sequences.entry(std::ptr::from_ref(class)).or_insert_with(|| {
            let ranges = scalar_ranges(class).into_iter();
            ranges.flat_map(|(first, last)| Utf8Sequences::new(first, last)).collect()
        });
        // States by the bytes that must still come; at most three of them.
        let mut tails: FxHashMap<u64, NfaId> = FxHashMap::default();
        let key = |ranges: &[Utf8Range]| {
            let byte = |key: u64, byte: u8| key << 8 | u64::from(byte);
            ranges.iter().fold(1, |key, range| byte(byte(key, range.start), range.end))
        };
        for sequence in sequences {
            let mut at = from;
            let mut rest = sequence.as_slice();
            while let [range, after @ ..] = rest {
                let known =
                    if after.is_empty() { Some(to) } else { tails.get(&key(after)).copied() };
                let next = known.unwrap_or_else(|| self.nfa.state());
                self.nfa.add(at, Step::Byte(range.start, range.end, next));
                if known.is_some() {
                    break;
                }
                tails.insert(key(after), next);
                (at, rest) = (next, after);
            }
        }
    }
}

/// How often what a repetition repeats is written out.
fn times(repeat: Repeat) -> u64 {
    u64::from(repeat.max().unwrap_or(repeat.min() + 1))
}

/// The code points of a class as inclusive ranges.
fn scalar_ranges(class: &Class) -> Vec<(char, char)> {
    if !class.is_negated() {
        return class.ranges().to_vec();
    }
    let mut ranges = class.ranges().to_vec();
    ranges.sort_unstable();
    let mut others = Vec::new();
    // `next`: the first code point that no range has taken or passed; none left after the last.
    let mut next = Some('\0');
    for (first, last) in ranges {
        if let Some(start) = next.filter(|start| *start < first) {
            let end = (start..first).next_back();
            others.extend(end.map(|end| (start, end)));
        }
        next = next.and_then(|start| (start.max(last)..=char::MAX).nth(usize::from(start <= last)));
    }
    others.extend(next.map(|start| (start, char::MAX)));
    others
}
