//! A [`Grammar`] as railroad diagrams on one SVG page, for people.
//!
//! One diagram a rule, in the grammar's order, each with its name and comment above it, side by side
//! where they fit. A rule with a comment, which a function's has, begins a section; those named
//! after it belong to it. A name within a diagram is a link to its rule.
//!
//! **Invariant:** the text is well-formed XML whatever the grammar holds, and needs no other file.
//! **Invariant:** the page is [`PAGE_WIDTH`] wide unless a single part is wider; what is long is
//! cut and says so.

mod visible;
mod node;

use railroad::svg::{HDir, Renderer};
use railroad::{Node, NodeGeometry, Sequence, SimpleEnd, SimpleStart};

use self::node::{Drawing, of_expr};
use self::visible::{cut, visible};
use super::{Grammar, Rule, RuleName};

/// Width of the page, in the units of SVG: about that of a sheet of paper at 96 to the inch.
pub const PAGE_WIDTH: i64 = 1_100;

const MARGIN: i64 = 20;
const ROOM: i64 = PAGE_WIDTH - 2 * MARGIN;
/// The circles at both ends of a diagram.
const ENDS: i64 = 50;
/// Between two diagrams side by side.
const GAP: i64 = 40;
const LINE_HEIGHT: i64 = 18;
/// Most columns of a caption, and most lines of a comment.
const CAPTION_COLUMNS: usize = 130;
const COMMENT_LINES: usize = 4;

const STYLE: &str = include_str!("draw/style.css");

/// The drawing.
///
/// ```
/// use call_me_maybe::grammar::{draw, parse};
///
/// let grammar = parse::gbnf("root ::= \"<\" name \">\"\nname ::= [a-z]+", None)?;
/// let svg = draw::svg(&grammar);
/// assert!(svg.contains(r#"id="rule-name""#) && svg.contains(r##"href="#rule-name""##));
/// # Ok::<(), call_me_maybe::grammar::parse::ParseError>(())
/// ```
#[must_use]
pub fn svg(grammar: &Grammar) -> String {
    let placed = place(grammar.rules());
    let width = placed.iter().map(|rule| rule.x + rule.width + MARGIN).max().unwrap_or(0);
    let width = width.max(PAGE_WIDTH);
    let height = placed.iter().map(|rule| rule.y + rule.height).max().unwrap_or(0) + MARGIN;
    let mut text = String::new();
    let written = page(&mut text, &placed, width, height);
    debug_assert!(written.is_ok(), "a String takes all text");
    text
}

/// A rule's diagram and where it stands.
struct Placed<'a> {
    rule: &'a Rule,
    comment: Vec<String>,
    /// Whether a section begins with it.
    is_first: bool,
    diagram: Drawing,
    geometry: NodeGeometry,
    x: i64,
    y: i64,
    width: i64,
    height: i64,
}

fn place(rules: &[Rule]) -> Vec<Placed<'_>> {
    let mut placed: Vec<Placed<'_>> = Vec::new();
    let (mut x, mut y, mut row_height) = (MARGIN, MARGIN, 0);
    let mut section: Option<&Rule> = None;
    for rule in rules {
        let parts: Vec<Drawing> =
            vec![Box::new(SimpleStart), of_expr(&rule.expr, ROOM - ENDS), Box::new(SimpleEnd)];
        let diagram: Drawing = Box::new(Sequence::new(parts));
        let geometry = diagram.compute_geometry();
        let comment = comment(&rule.comment);
        let name_width = i64::try_from(rule.name.as_str().len()).unwrap_or(i64::MAX / 16) * 9;
        let width = geometry.width.max(name_width);
        let n_lines = i64::try_from(comment.len()).unwrap_or(0) + 1;
        let height = n_lines * LINE_HEIGHT + geometry.height + LINE_HEIGHT;
        let belongs = |section: &Rule| {
            let rest = rule.name.as_str().strip_prefix(section.name.as_str());
            rest.is_some_and(|rest| rest.starts_with('-'))
        };
        let is_commented = !rule.comment.is_empty();
        let is_first = is_commented || section.is_some_and(|section| !belongs(section));
        if is_first {
            section = is_commented.then_some(rule).filter(|rule| rule.name != RuleName::root());
        }
        if x > MARGIN && (is_first || x + width > MARGIN + ROOM) {
            (x, y, row_height) = (MARGIN, y + row_height, 0);
        }
        // Sections stand apart.
        if is_first && y > MARGIN {
            y += LINE_HEIGHT;
        }
        placed.push(Placed { rule, comment, is_first, diagram, geometry, x, y, width, height });
        x += width + GAP;
        row_height = row_height.max(height);
    }
    placed
}

/// The lines of a comment as they are shown: visible, and not too long.
fn comment(lines: &[String]) -> Vec<String> {
    let mut shown: Vec<String> = Vec::new();
    for line in lines {
        let mut row = String::new();
        for word in line.split_whitespace().map(visible) {
            if !row.is_empty() && row.chars().count() + word.chars().count() > CAPTION_COLUMNS {
                shown.push(std::mem::take(&mut row));
            }
            if !row.is_empty() {
                row.push(' ');
            }
            row.push_str(&word);
        }
        shown.push(row);
    }
    if shown.len() > COMMENT_LINES {
        let n_more = shown.len() - COMMENT_LINES + 1;
        shown.truncate(COMMENT_LINES - 1);
        shown.push(format!("… {n_more} more lines"));
    }
    shown.iter().map(|row| cut(row, CAPTION_COLUMNS)).collect()
}

fn page(text: &mut String, placed: &[Placed<'_>], width: i64, height: i64) -> std::fmt::Result {
    let mut out = Renderer::new(text);
    let mut svg = out.start_element("svg")?;
    svg.attr("xmlns", "http://www.w3.org/2000/svg")?;
    svg.attr("xmlns:xlink", "http://www.w3.org/1999/xlink")?;
    svg.attr("class", "railroad")?;
    svg.attr("width", width)?;
    svg.attr("height", height)?;
    svg.attr("viewBox", format_args!("0 0 {width} {height}"))?;
    svg.finish()?;
    out.text_element("title", &format!("A grammar of {} rules", placed.len()), |_| Ok(()))?;
    out.raw_text_element("style", STYLE, |tag| tag.attr("type", "text/css"))?;
    let mut page = out.start_element("rect")?;
    page.attr("class", "page")?;
    page.attr("width", "100%")?;
    page.attr("height", "100%")?;
    page.finish_empty()?;
    for rule in placed {
        draw(&mut out, rule, width)?;
    }
    out.end_element("svg")
}

fn draw(out: &mut Renderer<'_>, placed: &Placed<'_>, width: i64) -> std::fmt::Result {
    let Placed { x, y, .. } = *placed;
    if placed.is_first && y > MARGIN {
        let mut line = out.start_element("line")?;
        line.attr("class", "between")?;
        line.attr("x1", MARGIN)?;
        line.attr("x2", width - MARGIN)?;
        line.attr("y1", y - LINE_HEIGHT / 2)?;
        line.attr("y2", y - LINE_HEIGHT / 2)?;
        line.finish_empty()?;
    }
    let mut group = out.start_element("g")?;
    group.attr("id", format_args!("rule-{}", placed.rule.name))?;
    group.finish()?;
    let mut line = y + LINE_HEIGHT * 3 / 4;
    out.text_element("text", placed.rule.name.as_str(), |tag| {
        tag.attr("class", "name")?;
        tag.attr("x", x)?;
        tag.attr("y", line)
    })?;
    for comment in &placed.comment {
        line += LINE_HEIGHT;
        out.text_element("text", comment, |tag| {
            tag.attr("class", "caption")?;
            tag.attr("x", x)?;
            tag.attr("y", line)
        })?;
    }
    let top = line + LINE_HEIGHT / 2;
    placed.diagram.render_with_geometry(out, x, top, HDir::LTR, &placed.geometry)?;
    out.end_element("g")
}
