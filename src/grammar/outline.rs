//! The shape of a grammar's rules in one list, with numbers in place of names: what walks over all
//! of them reads.

use rustc_hash::FxHashMap;

use super::{Expr, GrammarError, Repeat, Rule, RuleName};

/// What an expression is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A literal or a class.
    Terminal,
    /// The rule of that number.
    Rule(usize),
    Concat,
    Choice,
    Repeat(Repeat),
}

/// What follows for an expression from its parts, and for a rule's name from the rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Property {
    /// It has the empty text.
    Empty,
    /// It has a text.
    Ends,
    /// It has a text that is not empty.
    HasText,
}

#[derive(Debug, Clone, Copy)]
struct Part {
    kind: Kind,
    /// The first part that is no longer inside this one; the parts of this one begin right after it.
    end: usize,
}

/// The rules of a grammar, each an expression with its parts after it.
#[derive(Debug)]
pub(super) struct Outline {
    parts: Vec<Part>,
    /// Where each rule begins.
    rules: Vec<usize>,
}

impl Outline {
    /// Numbers the rules as they stand; a name that stands twice is its first rule's.
    ///
    /// # Errors
    ///
    /// [`GrammarError::EmptyPart`] and [`GrammarError::UndefinedRule`].
    pub(super) fn new(rules: &[Rule]) -> Result<Self, GrammarError> {
        let mut numbers = FxHashMap::default();
        for (number, rule) in rules.iter().enumerate() {
            numbers.entry(&rule.name).or_insert(number);
        }
        let mut outline = Self { parts: Vec::new(), rules: Vec::with_capacity(rules.len()) };
        for rule in rules {
            outline.rules.push(outline.parts.len());
            outline.add(&rule.expr, rule, &numbers)?;
        }
        Ok(outline)
    }

    fn add(
        &mut self,
        expr: &Expr,
        rule: &Rule,
        numbers: &FxHashMap<&RuleName, usize>,
    ) -> Result<(), GrammarError> {
        let kind = match expr {
            _ if is_empty(expr) => {
                return Err(GrammarError::EmptyPart { name: rule.name.clone() });
            }
            Expr::Literal(_) | Expr::Class(_) => Kind::Terminal,
            Expr::Rule(name) => {
                let number = numbers.get(name).ok_or_else(|| GrammarError::UndefinedRule {
                    name: name.clone(),
                    rule: rule.name.clone(),
                })?;
                Kind::Rule(*number)
            }
            Expr::Concat(_) => Kind::Concat,
            Expr::Choice(_) => Kind::Choice,
            Expr::Repeat(_, repeat) => Kind::Repeat(*repeat),
        };
        let at = self.parts.len();
        self.parts.push(Part { kind, end: 0 });
        expr.children().iter().try_for_each(|part| self.add(part, rule, numbers))?;
        self.parts[at].end = self.parts.len();
        Ok(())
    }

    pub(super) fn n_rules(&self) -> usize {
        self.rules.len()
    }

    /// The expression of a rule.
    pub(super) fn rule(&self, number: usize) -> usize {
        self.rules[number]
    }

    pub(super) fn kind(&self, part: usize) -> Kind {
        self.parts[part].kind
    }

    /// The expressions that one is made of.
    pub(super) fn children(&self, part: usize) -> impl Iterator<Item = usize> + '_ {
        let end = self.parts[part].end;
        let next = move |child: usize| Some(child).filter(|child| *child < end);
        std::iter::successors(next(part + 1), move |child| next(self.parts[*child].end))
    }

    /// An expression and all that are inside it.
    pub(super) fn inside(&self, part: usize) -> impl Iterator<Item = usize> + use<> {
        part..self.parts[part].end
    }

    /// Which rules the first one leads to.
    pub(super) fn reached(&self) -> Vec<bool> {
        let mut reached = vec![false; self.n_rules()];
        let mut open = Vec::new();
        if let Some(first) = reached.first_mut() {
            *first = true;
            open.push(0);
        }
        while let Some(rule) = open.pop() {
            for part in self.inside(self.rule(rule)) {
                if let Kind::Rule(next) = self.kind(part) {
                    if !std::mem::replace(&mut reached[next], true) {
                        open.push(next);
                    }
                }
            }
        }
        reached
    }

    /// Which rules have the property.
    pub(super) fn with(&self, property: Property) -> Vec<bool> {
        let mut found = vec![false; self.n_rules()];
        let mut n_found = 0;
        // Ours stand before those they use, people's often after; a pass each way serves both.
        for turn in 0.. {
            let before = n_found;
            for index in 0..found.len() {
                let rule = if turn % 2 == 0 { found.len() - 1 - index } else { index };
                if !found[rule] && self.has(self.rule(rule), property, &found) {
                    found[rule] = true;
                    n_found += 1;
                }
            }
            if n_found == before || n_found == found.len() {
                break;
            }
        }
        found
    }

    /// Whether an expression has the property, where these rules have it.
    pub(super) fn has(&self, part: usize, property: Property, found: &[bool]) -> bool {
        let has = |part| self.has(part, property, found);
        match self.kind(part) {
            Kind::Terminal => property != Property::Empty,
            Kind::Rule(rule) => found[rule],
            Kind::Concat if property == Property::HasText => self.children(part).any(has),
            Kind::Concat => self.children(part).all(has),
            Kind::Choice => self.children(part).any(has),
            Kind::Repeat(repeat) if property == Property::HasText => {
                repeat.max() != Some(0) && has(part + 1)
            }
            Kind::Repeat(repeat) => repeat.min() == 0 || has(part + 1),
        }
    }
}

/// Whether it is a part that stands for nothing at all.
fn is_empty(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(text) => text.is_empty(),
        Expr::Class(class) => {
            class.is_empty() || class.ranges().iter().any(|(first, last)| first > last)
        }
        Expr::Choice(parts) => parts.is_empty(),
        Expr::Concat(_) | Expr::Rule(_) | Expr::Repeat(..) => false,
    }
}
