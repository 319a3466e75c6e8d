//! Many texts as one expression that shares their beginnings.

use super::names::Names;
use crate::grammar::{Expr, Rule, RuleName};

/// Fewer texts than this are listed one by one, which is easier to read.
pub(super) const FEW: usize = 16;

/// Parentheses nest at most this deep before a rule of its own begins.
const MAX_NESTING: usize = 12;

/// One of the texts, each followed by what belongs to it; no text twice.
///
/// In the order of the texts as far as common beginnings allow.
pub(super) fn factored(
    texts: Vec<(String, Option<Expr>)>,
    name: &RuleName,
    names: &mut Names,
    rules: &mut Vec<Rule>,
) -> Expr {
    if texts.len() <= FEW {
        let all = texts.into_iter().map(|(text, rest)| followed(&text, rest)).collect();
        return one_of(all);
    }
    let all: Vec<Text> = texts.iter().map(|(t, rest)| (t.as_str(), rest)).collect();
    group(&all, 0, name, names, rules)
}

/// A text, and what belongs to it.
type Text<'t> = (&'t str, &'t Option<Expr>);

fn followed(text: &str, rest: Option<Expr>) -> Expr {
    match rest {
        Some(rest) if text.is_empty() => rest,
        Some(rest) => Expr::literal(text).then(rest),
        None => Expr::literal(text),
    }
}

/// One of several, of which there is at least one.
pub(super) fn one_of(mut all: Vec<Expr>) -> Expr {
    if all.len() == 1 { all.remove(0) } else { Expr::Choice(all) }
}

fn group(
    texts: &[Text<'_>],
    nesting: usize,
    name: &RuleName,
    names: &mut Names,
    rules: &mut Vec<Rule>,
) -> Expr {
    // In the order in which each first character is met.
    let mut groups: Vec<Vec<Text>> = Vec::new();
    let mut at: rustc_hash::FxHashMap<Option<char>, usize> = rustc_hash::FxHashMap::default();
    for &(text, rest) in texts {
        let first = text.chars().next();
        let index = *at.entry(first).or_insert_with(|| {
            groups.push(Vec::new());
            groups.len() - 1
        });
        groups[index].push((text, rest));
    }
    let mut productions = Vec::new();
    let mut ends_here = false;
    for members in groups {
        if let [(text, rest)] = members.as_slice() {
            if text.is_empty() && rest.is_none() {
                ends_here = true;
            } else {
                productions.push(followed(text, (*rest).clone()));
            }
            continue;
        }
        let shared = common(&members);
        let inner: Vec<Text> =
            members.iter().map(|(text, rest)| (&text[shared..], *rest)).collect();
        let head = &members[0].0[..shared];
        let rest = if nesting >= MAX_NESTING {
            let rule = names.fresh(&[name.as_str(), "rest"], "rest");
            let expr = group(&inner, 0, name, names, rules);
            rules.push(Rule::new(rule.clone(), expr));
            Expr::Rule(rule)
        } else {
            group(&inner, nesting + 1, name, names, rules)
        };
        productions.push(Expr::literal(head).then(rest));
    }
    let all = one_of(productions);
    if ends_here { all.optional() } else { all }
}

/// Bytes that all of the texts begin with.
fn common(texts: &[Text<'_>]) -> usize {
    let first = texts[0].0;
    let shared = texts[1..].iter().fold(first.len(), |shared, (text, _)| {
        first[..shared]
            .char_indices()
            .zip(text.chars())
            .find(|((_, a), b)| a != b)
            .map_or(shared.min(text.len()), |((index, _), _)| index)
    });
    shared.min(first.len())
}
