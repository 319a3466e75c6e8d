//! Temporary.
use super::names::Names;
use crate::grammar::{Expr, Rule, RuleName};
use crate::regular::{Dfa, TooLarge};
pub(super) fn automaton(
    _dfa: &Dfa, _name: &RuleName, _names: &mut Names, _rules: &mut Vec<Rule>,
    _terminal: &mut dyn FnMut(&[(char, char)]) -> Expr,
) -> Result<Option<Expr>, TooLarge> { Err(TooLarge) }
pub(super) fn string_terminal(_ranges: &[(char, char)]) -> (Expr, bool) { (Expr::literal(""), false) }
