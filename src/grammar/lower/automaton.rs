//! A regular language as an expression that reads like a pattern.
//!
//! A state becomes what can be read from it to the end. What follows a state that several lead to is
//! a rule, referred to in last place, where llama.cpp's stack does not grow; everything else stands
//! where it is read. So a set of strings becomes a trie whose common ends are shared.
//!
//! **Invariant:** every text has one reading, as it has one path through the automaton.
//! **Invariant:** parentheses nest at most [`MAX_DEPTH`] deep, for llama.cpp's parser recurses on
//! them; nothing here recurses along a path.

use rustc_hash::FxHashMap;

use super::names::Names;
use crate::grammar::check::n_rules;
use crate::grammar::{Expr, Repeat, Rule, RuleName};
use crate::regular::Dfa;

/// Deepest nesting before a rule is begun.
const MAX_DEPTH: u32 = 20;

/// Longest literal written out for a repetition.
const MAX_WRITTEN_OUT: usize = 40;

/// How a set of code points is written.
pub(super) type Terminal<'t> = &'t dyn Fn(&[(char, char)]) -> Expr;

/// What a language is written as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Written {
    /// It has no text.
    Nothing,
    /// Its one text is empty, for which there is no expression.
    Empty,
    /// All its texts; the empty one is among them where the expression may be empty.
    Expr(Expr),
}

/// Writes the language; `terminal` says how a set of code points is written.
///
/// Rules that it needs are named after `name` and appended, each before those it uses.
pub(super) fn automaton(
    dfa: &Dfa,
    name: &RuleName,
    names: &mut Names,
    rules: &mut Vec<Rule>,
    terminal: Terminal<'_>,
) -> Written {
    if dfa.is_empty() {
        return Written::Nothing;
    }
    let graph = Graph::new(dfa);
    let order = post_order(dfa.states().len(), |state| graph.targets(state));
    let mut n_uses = vec![0_u32; dfa.states().len()];
    for state in &order {
        graph.targets(*state).iter().for_each(|target| n_uses[*target as usize] += 1);
    }
    let mut writer = Writer {
        built: vec![None; dfa.states().len()],
        rule_names: vec![None; dfa.states().len()],
        terminals: FxHashMap::default(),
        own: Vec::new(),
        sets: Vec::new(),
        n_references: vec![0; dfa.states().len()],
        graph,
        n_uses,
        name,
        names,
        terminal,
    };
    for state in order {
        writer.build(state);
    }
    let start = writer.after(0);
    let written =
        if start.parts.is_empty() { Written::Empty } else { Written::Expr(writer.expr(start)) };
    // They were made from the end of the texts to the beginning.
    rules.extend(writer.own.into_iter().rev());
    rules.append(&mut writer.sets);
    written
}

/// The states reached from the first, each after all that it leads to, save those that lead back.
fn post_order(n_states: usize, targets: impl Fn(u32) -> Vec<u32>) -> Vec<u32> {
    let mut seen = vec![false; n_states];
    let mut order = Vec::new();
    let mut open = vec![(0, targets(0))];
    seen[0] = true;
    while let Some((state, left)) = open.last_mut() {
        match left.pop() {
            Some(next) if !seen[next as usize] => {
                seen[next as usize] = true;
                open.push((next, targets(next)));
            }
            Some(_) => {}
            None => {
                order.push(*state);
                open.pop();
            }
        }
    }
    order
}

/// An automaton whose edges are joined to sets of code points.
struct Graph {
    sets: Vec<Vec<(char, char)>>,
    /// In how many places each set is used.
    n_uses: Vec<u32>,
    states: Vec<Node>,
}

struct Node {
    accepting: bool,
    /// Sets, by number, and their targets; not the set that leads back to the state.
    ways: Vec<(u32, u32)>,
    /// The set that leads back to the state.
    again: Option<u32>,
    /// Where the state is one of a row: at most so many of the set, then what follows that state.
    row: Option<Row>,
}

/// `x{0,max}`, then what can be read from a state.
#[derive(Debug, Clone, Copy)]
struct Row {
    set: u32,
    max: u32,
    end: u32,
}

impl Graph {
    fn new(dfa: &Dfa) -> Self {
        let mut graph = Self { sets: Vec::new(), n_uses: Vec::new(), states: Vec::new() };
        let mut numbers: FxHashMap<Vec<(char, char)>, u32> = FxHashMap::default();
        for (number, state) in (0_u32..).zip(dfa.states()) {
            let mut edges = state.edges.clone();
            edges.sort_by_key(|(first, _, to)| (*to, *first));
            let mut ways: Vec<(char, u32, u32)> = Vec::new();
            for same in edges.chunk_by(|one, other| one.2 == other.2) {
                let set: Vec<_> = same.iter().map(|(first, last, _)| (*first, *last)).collect();
                let set = *numbers.entry(set).or_insert_with_key(|set| {
                    graph.sets.push(set.clone());
                    graph.n_uses.push(0);
                    u32::try_from(graph.sets.len() - 1).unwrap_or(u32::MAX)
                });
                graph.n_uses[set as usize] += 1;
                ways.push((same[0].0, set, same[0].2));
            }
            ways.sort_unstable();
            let again = ways.iter().find(|way| way.2 == number).map(|way| way.1);
            let ways = ways.iter().filter(|way| way.2 != number).map(|way| (way.1, way.2));
            let accepting = state.accepting;
            graph.states.push(Node { accepting, ways: ways.collect(), again, row: None });
        }
        for state in post_order(graph.states.len(), |state| graph.targets(state)) {
            graph.states[state as usize].row = graph.row(state);
        }
        graph
    }

    /// What the expression of a state is made of.
    fn targets(&self, state: u32) -> Vec<u32> {
        let node = &self.states[state as usize];
        match node.row {
            Some(row) => vec![row.end],
            None => node.ways.iter().map(|(_, target)| *target).collect(),
        }
    }

    /// Finds a set that leads to a state from which the rest is the same: `x` then `x{0,n} rest`,
    /// or `rest`, are together `x{0,n+1} rest`.
    fn row(&self, state: u32) -> Option<Row> {
        let node = &self.states[state as usize];
        if node.again.is_some() {
            return None;
        }
        (0..node.ways.len()).find_map(|at| {
            let (set, target) = node.ways[at];
            let next = &self.states[target as usize];
            if next.accepting != node.accepting || next.again.is_some() {
                return None;
            }
            let rest =
                || node.ways.iter().enumerate().filter(|(i, _)| *i != at).map(|(_, way)| way);
            match next.row {
                Some(row) if row.set == set && next.ways.len() == node.ways.len() => {
                    let others = next.ways.iter().filter(|way| way.0 != set);
                    rest().eq(others).then_some(Row { max: row.max + 1, ..row })
                }
                _ => {
                    let last = next.ways.len() + 1 == node.ways.len() && rest().eq(&next.ways);
                    last.then_some(Row { set, max: 1, end: target })
                }
            }
        })
    }
}

/// What can be read from a state to the end.
#[derive(Debug, Clone, Default)]
struct Built {
    /// From the last to the first, so that one more in front is quick.
    parts: Vec<Part>,
    depth: u32,
}

#[derive(Debug, Clone)]
enum Part {
    /// Code points of the set of that number, so many times.
    Times(u32, u32, Option<u32>),
    Expr(Expr),
}

struct Writer<'a> {
    graph: Graph,
    /// How many expressions a state's is part of.
    n_uses: Vec<u32>,
    built: Vec<Option<Built>>,
    /// The names of the states that are rules.
    rule_names: Vec<Option<RuleName>>,
    /// How often each was referred to by name.
    n_references: Vec<u32>,
    /// The names of the sets that are rules.
    terminals: FxHashMap<u32, RuleName>,
    /// The rules of states.
    own: Vec<Rule>,
    /// The rules of sets.
    sets: Vec<Rule>,
    name: &'a RuleName,
    names: &'a mut Names,
    terminal: Terminal<'a>,
}

impl Writer<'_> {
    /// What can be read from the state; a reference where it is a rule or not built yet.
    fn after(&mut self, state: u32) -> Built {
        let at = state as usize;
        if self.rule_names[at].is_none() {
            let built =
                if self.n_uses[at] > 1 { self.built[at].clone() } else { self.built[at].take() };
            if let Some(built) = built {
                return built;
            }
        }
        let fresh = || self.names.fresh(&[self.name.as_str()], "text");
        let name = self.rule_names[at].get_or_insert_with(fresh).clone();
        self.n_references[at] += 1;
        Built { parts: vec![Part::Expr(Expr::Rule(name))], depth: 0 }
    }

    fn build(&mut self, state: u32) {
        let at = state as usize;
        let mut built = match self.graph.states[at].row {
            Some(Row { set, max, end }) => {
                let mut built = self.after(end);
                built.parts.push(Part::Times(set, 0, Some(max)));
                built
            }
            None => self.ways(state),
        };
        if let (1, Some(name)) = (self.n_references[at], &self.rule_names[at]) {
            if self.looped(&mut built, &name.clone()) {
                // What led back was one of its uses.
                self.rule_names[at] = None;
                self.n_uses[at] -= 1;
            }
        }
        // A short end is easier to read in its place than as a rule of its own.
        let is_short = match built.parts.as_slice() {
            [] | [Part::Times(..)] => true,
            parts => parts.len() <= MAX_WRITTEN_OUT / 4 && parts.iter().all(|p| self.is_letter(p)),
        };
        if self.rule_names[at].is_none()
            && built.depth < MAX_DEPTH
            && (self.n_uses[at] < 2 || is_short)
        {
            self.built[at] = Some(built);
            return;
        }
        let Built { parts, .. } = self.after(state);
        let expr = self.expr(built);
        if let [Part::Expr(Expr::Rule(name))] = parts.as_slice() {
            self.own.push(Rule::new(name.clone(), expr));
        }
    }

    /// Writes `P (Q name)?`, where that is what `name` stands for, as `P (Q P)*`; whether it was.
    fn looped(&mut self, built: &mut Built, name: &RuleName) -> bool {
        let Some((Part::Expr(Expr::Repeat(inner, Repeat::OPTIONAL)), first)) =
            built.parts.split_first_mut()
        else {
            return false;
        };
        let Expr::Concat(parts) = &mut **inner else { return false };
        let is_back = |part: &Expr| matches!(part, Expr::Rule(rule) if rule == name);
        // Written twice, so only where it is short.
        let short = first.len() <= 2 && first.iter().all(|part| matches!(part, Part::Times(..)));
        if !short || !parts.last().is_some_and(is_back) {
            return false;
        }
        parts.pop();
        let first = Built { parts: first.to_vec(), depth: 0 };
        let mut again = parts.drain(..);
        let Some(start) = again.next() else { return false };
        let mut again = again.fold(start, Expr::then);
        if !first.parts.is_empty() {
            again = again.then(self.expr(first));
        }
        built.parts[0] = Part::Expr(again.any_times());
        true
    }

    /// Whether the part is one code point once.
    fn is_letter(&self, part: &Part) -> bool {
        match part {
            Part::Times(set, 1, Some(1)) => {
                matches!(self.graph.sets[*set as usize].as_slice(), [(first, last)] if first == last)
            }
            _ => false,
        }
    }

    /// The ways on from a state as alternatives, in front of them what leads back to it.
    fn ways(&mut self, state: u32) -> Built {
        let node = &self.graph.states[state as usize];
        let (again, accepting, ways) = (node.again, node.accepting, node.ways.clone());
        let mut depth = 0;
        let mut all = Vec::with_capacity(ways.len());
        for (set, target) in ways {
            let mut way = self.after(target);
            match way.parts.last_mut() {
                Some(Part::Times(same, min, max)) if *same == set => {
                    *min += 1;
                    *max = max.map(|max| max + 1);
                }
                _ => way.parts.push(Part::Times(set, 1, Some(1))),
            }
            depth = depth.max(way.depth + 1);
            all.push(way);
        }
        let mut built = Built::default();
        if all.len() > 1 {
            let end = common_end(&mut all);
            let productions = all.into_iter().map(|way| self.expr(way)).collect();
            built.parts.extend(end.map(Part::Expr));
            built.parts.push(Part::Expr(Expr::Choice(productions)));
            built.depth = depth;
        } else if let Some(way) = all.pop() {
            built = way;
        }
        if accepting && !built.parts.is_empty() {
            if let [Part::Times(_, min @ 1, _)] = built.parts.as_mut_slice() {
                *min = 0;
            } else {
                let expr = self.expr(built).optional();
                built = Built { parts: vec![Part::Expr(expr)], depth: depth + 1 };
            }
        }
        if let Some(set) = again {
            built.parts.push(Part::Times(set, 0, None));
        }
        built
    }

    fn expr(&mut self, built: Built) -> Expr {
        let mut expr: Option<Expr> = None;
        for part in built.parts.into_iter().rev() {
            let part = match part {
                Part::Expr(part) => part,
                Part::Times(set, min, max) => self.times(set, min, max),
            };
            expr = Some(match expr {
                None => part,
                Some(before) => before.then(part),
            });
        }
        // Only the empty text has no parts, and it is no production.
        expr.unwrap_or_else(|| Expr::Concat(Vec::new()))
    }

    /// Code points of a set, `min` to `max` times, however large these are.
    fn times(&mut self, set: u32, min: u32, max: Option<u32>) -> Expr {
        let most = max.unwrap_or(min).clamp(1, Repeat::LIMIT);
        let mut one = (self.terminal)(&self.graph.sets[set as usize]);
        // What is more than a class is read more easily once, under a name.
        let is_long = matches!(one, Expr::Choice(_)) && self.graph.n_uses[set as usize] > 2;
        if is_long || n_rules(&one) * u64::from(most) > u64::from(Repeat::LIMIT) {
            let name = if let Some(name) = self.terminals.get(&set) {
                name.clone()
            } else {
                let name = self.names.fresh(&[self.name.as_str()], "text");
                self.terminals.insert(set, name.clone());
                self.sets.push(Rule::new(name.clone(), one));
                name
            };
            one = Expr::Rule(name);
        }
        if let Expr::Literal(text) = &one {
            let length = text.len() * min as usize;
            if max == Some(min) && length <= MAX_WRITTEN_OUT {
                return Expr::Literal(text.repeat(min as usize));
            }
        }
        self.split(&one, min, max)
    }

    /// A repetition in pieces that llama.cpp counts, each text in one way.
    fn split(&mut self, one: &Expr, min: u32, max: Option<u32>) -> Expr {
        let repeat = |min, max| match (min, max) {
            (1, Some(1)) => one.clone(),
            _ => Expr::Repeat(Box::new(one.clone()), Repeat { min, max }),
        };
        if max.unwrap_or(min) <= Repeat::LIMIT {
            return repeat(min, max);
        }
        let full = || repeat(Repeat::LIMIT, Some(Repeat::LIMIT));
        let (mut n_full, mut rest) = (min / Repeat::LIMIT, min % Repeat::LIMIT);
        let mut parts = Vec::new();
        match max.map(|max| max - min) {
            None => parts.push(repeat(rest, None)),
            Some(0) => {
                if rest > 0 {
                    parts.push(repeat(rest, Some(rest)));
                }
            }
            Some(more) => {
                if rest == 0 && n_full > 0 && more < Repeat::LIMIT {
                    n_full -= 1;
                    rest = Repeat::LIMIT;
                }
                if rest > 0 {
                    parts.push(repeat(rest, Some(rest)));
                }
                // From the last piece: each is less than full, or full and goes on.
                let mut at_most = repeat(0, Some((more - 1) % Repeat::LIMIT + 1));
                for _ in 0..(more - 1) / Repeat::LIMIT {
                    let less = repeat(0, Some(Repeat::LIMIT - 1));
                    let name = self.names.fresh(&[self.name.as_str()], "text");
                    self.own.push(Rule::new(name.clone(), less.or(full().then(at_most))));
                    at_most = Expr::Rule(name);
                }
                parts.push(at_most);
            }
        }
        let mut all: Vec<Expr> = (0..n_full).map(|_| full()).collect();
        all.append(&mut parts);
        if all.len() == 1 { all.remove(0) } else { Expr::Concat(all) }
    }
}

/// Takes off the reference that all of them end in, if there is one.
fn common_end(ways: &mut [Built]) -> Option<Expr> {
    let end = |way: &Built| match way.parts.first() {
        Some(Part::Expr(Expr::Rule(name))) => Some(name.clone()),
        _ => None,
    };
    let common = end(ways.first()?)?;
    if !ways.iter().all(|way| end(way).as_ref() == Some(&common)) {
        return None;
    }
    for way in ways {
        way.parts.remove(0);
    }
    Some(Expr::Rule(common))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::grammar::check::check as check_grammar;
    use crate::grammar::lower::terminal::{plain_terminal, string_terminal};
    use crate::grammar::print::gbnf;
    use crate::grammar::recognize::Recognizer;
    use crate::grammar::{Class, Grammar};

    /// The grammar of quoted texts, or `None` without a text.
    fn grammar(dfa: &Dfa, terminal: Terminal<'_>) -> Option<Grammar> {
        let mut rules = Vec::new();
        let name = RuleName("t".into());
        let mut names = Names::default();
        names.fresh(&["t"], "");
        let quote = || Expr::literal("'");
        let expr = match automaton(dfa, &name, &mut names, &mut rules, terminal) {
            Written::Nothing => return None,
            Written::Empty => Expr::literal("''"),
            Written::Expr(expr) => quote().then(expr).then(quote()),
        };
        rules.insert(0, Rule::new(RuleName::root(), expr));
        let text = format!("{rules:?}");
        if text.contains("Rule(RuleName(\"char\"))") {
            let any = Class::but(&[('"', '"')]);
            rules.push(Rule::new(RuleName("char".into()), Expr::Class(any)));
        }
        let grammar = Grammar::new(rules).unwrap();
        check_grammar(&grammar).unwrap();
        Some(grammar)
    }

    fn text(dfa: &Dfa) -> String {
        grammar(dfa, &string_terminal).map_or("nothing".to_owned(), |grammar| gbnf(&grammar))
    }

    #[track_caller]
    fn check(pattern: &str, expected: &str) {
        let text = text(&Dfa::pattern(pattern).unwrap());
        let text = text.strip_suffix("char ::= [^\"]\n").unwrap_or(&text);
        let text = text.strip_prefix("root ::= \"'\" ").unwrap_or(text).trim_end();
        assert_eq!(text, expected);
    }

    #[test]
    fn patterns_read_like_themselves() {
        check("^abc$", r#"root ::= "'abc'""#);
        check("^$", r#"root ::= "''""#);
        check("a[]", "nothing");
        check("^[a-z]{3}$", r#"[a-z]{3} "'""#);
        check("^[a-z]{0,63}$", r#"[a-z]{0,63} "'""#);
        check("^[a-z]{2,63}$", r#"[a-z]{2,63} "'""#);
        check("^[a-z]*$", r#"[a-z]* "'""#);
        check("^[a-z]+$", r#"[a-z]+ "'""#);
        check("^[a-z]{3,}$", r#"[a-z]{3,} "'""#);
        check("^[a-z]{1,9}\\.com$", r#"[a-z]{1,9} ".com'""#);
        check("^a?b$", r#""a"? "b'""#);
        check("^(foo|bar)$", r#"("bar" | "foo") "'""#);
        check("^(foo|foobar)$", r#"root ::= "'foo" "bar"? "'""#);
        check("^x-", r#"root ::= "'x-" char* "'""#);
        check("^[ab]*c[^]*$", r#"[ab]* "c" char* "'""#);
        check("^[a-z]+(, [a-z]+)*$", r#"[a-z]+ (", " [a-z]+)* "'""#);
        check("^(ab)*$", r#""ab"* "'""#);
        check(
            "^(0[1-9]|1[0-2])(/[a-z]+:){2}$",
            r#"("0" [1-9] | "1" [0-2]) t-2 "'"
t-2 ::= "/" [a-z]+ ":/" [a-z]+ ":""#,
        );
        check("^([a-z]|%[0-9]{2})*$", r#"[a-z]* ("%" [0-9]{2} [a-z]*)* "'""#);
    }

    #[test]
    fn large_counts_are_split() {
        let words = |min, max| {
            let any = Dfa::with_length(min, max).unwrap();
            let letters = Dfa::pattern("^[a-z]*$").unwrap();
            text(&any.intersect(&letters).unwrap())
        };
        assert_eq!(words(2_000, Some(2_000)), "root ::= \"'\" [a-z]{2000} \"'\"\n");
        let check = |min, max, expected: &str| {
            let text = words(min, max);
            assert_eq!(text.strip_prefix("root ::= \"'\" ").unwrap().trim_end(), expected);
        };
        check(4_001, Some(4_001), r#"[a-z]{2000} [a-z]{2000} [a-z] "'""#);
        check(1_500, Some(2_500), r#"[a-z]{1500} [a-z]{0,1000} "'""#);
        check(2_500, Some(3_000), r#"[a-z]{2000} [a-z]{500} [a-z]{0,500} "'""#);
        check(2_000, Some(2_001), r#"[a-z]{2000} [a-z]? "'""#);
        check(3_000, None, r#"[a-z]{2000} [a-z]{1000,} "'""#);
        check(0, Some(2_001), "t-2 \"'\"\nt-2 ::= [a-z]{0,1999} | [a-z]{2000} [a-z]?");
        let five = "t-3 \"'\"\nt-3 ::= [a-z]{0,1999} | [a-z]{2000} t-2\n\
                t-2 ::= [a-z]{0,1999} | [a-z]{2000} [a-z]{0,1000}";
        check(0, Some(5_000), five);
    }

    /// A number below `below`, from a seed that it changes.
    fn random(seed: &mut u64, below: usize) -> usize {
        *seed ^= *seed << 13;
        *seed ^= *seed >> 7;
        *seed ^= *seed << 17;
        usize::try_from(*seed % below as u64).unwrap()
    }

    #[track_caller]
    fn check_texts(dfa: &Dfa, seed: &mut u64, letters: &[char]) {
        let Some(grammar) = grammar(dfa, &plain_terminal) else {
            assert!(dfa.is_empty());
            return;
        };
        let recognizer = Recognizer::new(&grammar).unwrap();
        for n in 0..60 {
            let mut text = String::new();
            let mut state = 0;
            for _ in 0..random(seed, 14) {
                // Every other text stays inside the language while it can.
                let edges = &dfa.states()[state].edges;
                let c = if n % 2 == 0 || edges.is_empty() {
                    letters[random(seed, letters.len())]
                } else {
                    let (first, last, to) = edges[random(seed, edges.len())];
                    state = to as usize;
                    if random(seed, 2) == 0 { first } else { last }
                };
                text.push(c);
            }
            let mut here = recognizer.clone();
            let whole = format!("'{text}'");
            let accepted = here.push_all(whole.as_bytes()).is_ok() && here.can_end();
            assert_eq!(accepted, dfa.accepts(&text), "{text:?} of {dfa:?}\n{}", gbnf(&grammar));
        }
    }

    #[test]
    fn random_automata_and_their_grammars_agree() {
        let seed = &mut 0x5eed_u64;
        let letters = ['a', 'b', 'c', 'd', 'é', '😀'];
        for round in 0..1_500 {
            let n_states = 1 + random(seed, 2 + round / 100);
            let states = (0..n_states).map(|_| {
                let accepting = random(seed, 3) == 0;
                let mut edges = Vec::new();
                for pair in letters.windows(2) {
                    if random(seed, 3) > 0 {
                        let to = u32::try_from(random(seed, n_states)).unwrap();
                        let last = char::from_u32(u32::from(pair[1]) - 1).unwrap();
                        edges.push((pair[0], last, to));
                    }
                }
                crate::regular::State { accepting, edges }
            });
            check_texts(&Dfa::from_states(states.collect()), seed, &letters);
        }
    }

    #[test]
    fn long_chains_and_deep_nests_are_written() {
        let long: String = ('a'..='z').cycle().take(15_000).collect();
        assert!(text(&Dfa::of_strings([long.as_str()])).contains(&long));
        // Every prefix is a text, so every state is optional.
        let prefixes: Vec<&str> = (0..2_000).map(|end| &long[..end]).collect();
        let dfa = Dfa::of_strings(prefixes);
        let grammar = grammar(&dfa, &plain_terminal).unwrap();
        let mut here = Recognizer::new(&grammar).unwrap();
        assert_eq!(here.push_all(format!("'{}'", &long[..1_234]).as_bytes()), Ok(()));
        let gbnf = gbnf(&grammar);
        let mut depth = 0;
        for c in gbnf.chars() {
            match c {
                '(' => depth += 1,
                ')' => depth -= 1,
                _ => {}
            }
            assert!(depth <= 40);
        }
    }

    #[test]
    fn many_strings_are_a_compact_trie() {
        let strings: Vec<String> = (0..5_000).map(|n| format!("value_{n:05}_of_many")).collect();
        let dfa = Dfa::of_strings(strings.iter().map(String::as_str));
        let text = text(&dfa);
        assert!(text.len() < 500, "{text}");
    }
}
