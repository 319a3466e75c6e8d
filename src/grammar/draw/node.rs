//! An expression as a diagram that fits a width.

use railroad::{
    Choice, Comment, Empty, Link, Node, NonTerminal, Optional, Repeat as Loop, Sequence, Stack,
    Terminal,
};

use super::visible::{class, cut, visible};
use crate::grammar::{Expr, Repeat, RuleName};

/// A part of a diagram.
pub(super) type Drawing = Box<dyn Node>;

/// Most productions of a choice that are drawn.
const PRODUCTIONS_LIMIT: usize = 40;
/// Deepest nesting within a rule that is drawn.
const NESTING_LIMIT: usize = 16;
/// What a choice, a loop or a stack needs beside its content.
const AROUND: i64 = 60;
/// Least width that a part is given, so that its text can be read.
const LEAST_ROOM: i64 = 240;
/// Most columns of a terminal.
const TERMINAL_COLUMNS: usize = 100;

/// Draws an expression; wider than `room` only where a single part is.
pub(super) fn of_expr(expr: &Expr, room: i64) -> Drawing {
    draw(expr, room, 0)
}

fn draw(expr: &Expr, room: i64, depth: usize) -> Drawing {
    if depth > NESTING_LIMIT {
        return Box::new(Comment::new("… deeper than is drawn".to_owned()));
    }
    let inside = (room - AROUND).max(LEAST_ROOM);
    match expr {
        Expr::Literal(text) => Box::new(Terminal::new(cut(&visible(text), columns(room)))),
        Expr::Class(set) => {
            let mut terminal = Terminal::new(class(set, columns(room)));
            terminal.attr("data-kind".to_owned()).or_insert_with(|| "class".to_owned());
            Box::new(terminal)
        }
        Expr::Rule(name) => reference(name, room),
        Expr::Concat(parts) => {
            concatenation(parts.iter().map(|part| draw(part, inside, depth + 1)), inside)
        }
        Expr::Choice(parts) => {
            let shown = parts.iter().take(PRODUCTIONS_LIMIT);
            let mut drawn: Vec<Drawing> = shown.map(|part| draw(part, inside, depth + 1)).collect();
            if let Some(n_more) = parts.len().checked_sub(PRODUCTIONS_LIMIT).filter(|n| *n > 0) {
                drawn.push(Box::new(Comment::new(format!("… {n_more} more"))));
            }
            Box::new(Choice::new(drawn))
        }
        Expr::Repeat(inner, repeat) => repetition(draw(inner, inside, depth + 1), *repeat),
    }
}

/// The columns of a terminal's text; a box takes 8.4 for each and 20 besides.
fn columns(room: i64) -> usize {
    usize::try_from((room - 20) * 10 / 84).unwrap_or(0).clamp(12, TERMINAL_COLUMNS)
}

fn reference(name: &RuleName, room: i64) -> Drawing {
    let target = format!("#rule-{name}");
    let label = NonTerminal::new(cut(name.as_str(), columns(room)));
    let mut link = Link::new(label, target.clone());
    // The crate writes the older `xlink:href` alone.
    link.attr("href".to_owned()).or_insert(target);
    Box::new(link)
}

/// The parts one after the other, in as many lines as they need.
fn concatenation(parts: impl Iterator<Item = Drawing>, room: i64) -> Drawing {
    const BETWEEN: i64 = 10;
    let mut lines: Vec<Vec<Drawing>> = Vec::new();
    let mut used = room;
    for part in parts {
        let width = part.compute_geometry().width + BETWEEN;
        used += width;
        match lines.last_mut() {
            Some(line) if used <= room => line.push(part),
            _ => {
                lines.push(vec![part]);
                used = width;
            }
        }
    }
    let mut lines = lines.into_iter().map(Sequence::new);
    match (lines.next(), lines.len()) {
        (None, _) => Box::new(Empty),
        (Some(line), 0) => Box::new(line),
        (Some(line), _) => Box::new(Stack::new(std::iter::once(line).chain(lines).collect())),
    }
}

fn repetition(inner: Drawing, repeat: Repeat) -> Drawing {
    let times = match (repeat.min(), repeat.max()) {
        (_, Some(0)) => return Box::new(Empty),
        (0, Some(1)) => return Box::new(Optional::new(inner)),
        (1, Some(1)) => return inner,
        (0 | 1, None) => None,
        (min, None) => Some(format!("{{{min},}}")),
        (min, Some(max)) if min == max => Some(format!("{{{min}}}")),
        (min, Some(max)) => Some(format!("{{{min},{max}}}")),
    };
    let back: Drawing = match times {
        Some(times) => Box::new(Comment::new(times)),
        None => Box::new(Empty),
    };
    let repeated = Loop::new(inner, back);
    if repeat.min() == 0 { Box::new(Optional::new(repeated)) } else { Box::new(repeated) }
}
