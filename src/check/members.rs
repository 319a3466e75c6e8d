//! The members of an object in every order that the grammar may take.
//!
//! First a graph: its points are the places between members, and an edge is a member that leads
//! from one to another, wherever in the object that is. Then a way through it that uses each
//! member once. A member that no path from a point leads to ends the search there, and members
//! that lead from and to the same points are one as good as the other; so the objects of our
//! grammars take about as many steps as they have pairs of members.
//!
//! **Invariant:** the points do not depend on which members are used up, so the graph holds every
//! order that the grammar takes, and both cuts lose none.

use std::collections::{HashMap, HashSet};

use super::document::{Member, NodeId};
use super::search::{Furthest, OutOfSteps, Prefix, Search, Way, Ways};
use crate::grammar::recognize::{Place, Recognizer};

/// A place between members.
struct Point {
    at: Recognizer,
    /// How it was found.
    text: String,
    edges: Vec<Edge>,
    /// The members that some path from here uses.
    ahead: Set,
}

#[derive(Clone)]
struct Edge {
    member: usize,
    to: usize,
    text: String,
}

impl Search<'_> {
    /// Every place that the object leads to.
    pub(super) fn object(
        &mut self,
        members: &[Member],
        node: NodeId,
        start: &Recognizer,
        prefix: &Prefix<'_>,
    ) -> Result<Vec<Way>, OutOfSteps> {
        let Some(at) = self.offer(start, "{", prefix, node)? else { return Ok(Vec::new()) };
        let mut order: Vec<&Member> = members.iter().collect();
        order.sort_by_key(|member| self.ranks.rank(&member.key));
        let mut graph = Graph {
            members: order,
            node,
            points: vec![Point {
                at,
                text: "{".to_owned(),
                edges: Vec::new(),
                ahead: Set::empty(members.len()),
            }],
            places: HashMap::new(),
            refused: members.iter().map(|_| None).collect(),
        };
        let (ways, failure) = self.apart(|search| {
            graph.explore(search, prefix)?;
            graph.look_ahead();
            graph.through(search, prefix)
        });
        let ways = ways?;
        if ways.is_empty() {
            if let Some(place) = graph.refused_value().or(failure) {
                self.blame(place);
            }
        }
        Ok(ways)
    }
}

struct Graph<'m> {
    /// In the order in which they are tried.
    members: Vec<&'m Member>,
    node: NodeId,
    /// The first is that before all members.
    points: Vec<Point>,
    places: HashMap<Place, usize>,
    /// For each member, the furthest place inside its value where that was refused.
    refused: Vec<Option<Furthest>>,
}

impl Graph<'_> {
    /// Finds all points and edges.
    ///
    /// Depth first and in order, so that most points are found behind the members that a spelling
    /// would have before them, and a failure is told at its place in such a spelling.
    fn explore(&mut self, search: &mut Search<'_>, prefix: &Prefix<'_>) -> Result<(), OutOfSteps> {
        // Points on the way, the member that led to each, and the next to try.
        let mut path: Vec<(usize, Option<usize>, usize)> = vec![(0, None, 0)];
        let mut used = Set::empty(self.members.len());
        let mut later = Vec::new();
        while let Some((point, via, next)) = path.last_mut() {
            let (point, via, member) = (*point, *via, *next);
            if member == self.members.len() {
                if let Some(member) = via {
                    used.remove(member);
                }
                path.pop();
                continue;
            }
            *next += 1;
            // Anew each time: a member that led to several points was removed after the first.
            if let Some(member) = via {
                used.insert(member);
            }
            if used.contains(member) {
                later.push((point, member));
                continue;
            }
            let found = self.edges(point, member, search, prefix)?;
            path.extend(found.into_iter().rev().map(|new| (new, Some(member), 0)));
        }
        // The member is in the text already that the point was found by, so no spelling looks so;
        // but the point may be reached without it.
        search.silently(|search| {
            while let Some((point, member)) = later.pop() {
                for new in self.edges(point, member, search, prefix)? {
                    later.extend((0..self.members.len()).map(|member| (new, member)));
                }
            }
            Ok(())
        })
    }

    /// Adds the edges of a member from a point; gives the points that were not known.
    fn edges(
        &mut self,
        point: usize,
        member: usize,
        search: &mut Search<'_>,
        prefix: &Prefix<'_>,
    ) -> Result<Vec<usize>, OutOfSteps> {
        let Member { key, value } = self.members[member];
        let (at, text) = (self.points[point].at.clone(), self.points[point].text.clone());
        let prefix = prefix.then(&text);
        let mut ways = vec![Way { at, text: String::new() }];
        if point > 0 {
            ways = search.each_then(ways, ", ", self.node, &prefix)?;
        }
        let mut keyed = Ways::default();
        for Way { at, text } in ways {
            let keys = search.key(key, self.node, &at, &prefix.then(&text))?;
            keyed.add_all(text, &keys);
        }
        let mut found = Vec::new();
        for Way { at, text } in search.each_then(keyed.list, ": ", self.node, &prefix)? {
            let (ways, failure) =
                search.apart(|search| search.value(*value, &at, &prefix.then(&text)));
            let ways = ways?;
            let known = self.refused[member].as_ref().map_or(0, |place| place.taken.len());
            if ways.is_empty() && failure.as_ref().is_some_and(|place| place.taken.len() > known) {
                self.refused[member] = failure;
            }
            for way in ways.iter() {
                let place = way.at.place();
                let new = self.points.len();
                let to = *self.places.entry(place).or_insert(new);
                let edge = format!("{text}{}", way.text);
                if to == new {
                    self.points.push(Point {
                        at: way.at.clone(),
                        text: format!("{}{edge}", self.points[point].text),
                        edges: Vec::new(),
                        ahead: Set::empty(self.members.len()),
                    });
                    found.push(new);
                }
                let edges = &mut self.points[point].edges;
                if !edges.iter().any(|known| known.member == member && known.to == to) {
                    edges.push(Edge { member, to, text: edge });
                }
            }
        }
        Ok(found)
    }

    /// Where the first member ends whose key is taken somewhere and whose value is not.
    ///
    /// A spelling that leaves such a member for later comes further, but tells less.
    fn refused_value(&mut self) -> Option<Furthest> {
        let mut leads = Set::empty(self.members.len());
        self.points.iter().flat_map(|p| &p.edges).for_each(|edge| leads.insert(edge.member));
        let refused = self.refused.iter_mut().enumerate();
        refused.filter(|(member, _)| !leads.contains(*member)).find_map(|(_, place)| place.take())
    }

    /// Finds which members some path from each point uses.
    fn look_ahead(&mut self) {
        let mut changed = true;
        while changed {
            changed = false;
            for point in (0..self.points.len()).rev() {
                let mut ahead = self.points[point].ahead.clone();
                for edge in &self.points[point].edges {
                    ahead.insert(edge.member);
                    ahead.extend(&self.points[edge.to].ahead);
                }
                if ahead != self.points[point].ahead {
                    self.points[point].ahead = ahead;
                    changed = true;
                }
            }
        }
    }

    /// For each member, the next of those that lead from and to the same points.
    fn next_alike(&self) -> Vec<Option<usize>> {
        let mut moves = vec![Vec::new(); self.members.len()];
        for (from, point) in self.points.iter().enumerate() {
            for edge in &point.edges {
                moves[edge.member].push((from, edge.to));
            }
        }
        let mut last: HashMap<Vec<(usize, usize)>, usize> = HashMap::new();
        let mut next = vec![None; self.members.len()];
        for (member, mut moves) in moves.into_iter().enumerate() {
            moves.sort_unstable();
            if let Some(before) = last.insert(moves, member) {
                next[before] = Some(member);
            }
        }
        next
    }

    /// The ways from the first point that use each member once, then close the object; one for
    /// each place.
    fn through(
        &self,
        search: &mut Search<'_>,
        prefix: &Prefix<'_>,
    ) -> Result<Vec<Way>, OutOfSteps> {
        let mut after_alike = Set::empty(self.members.len());
        let next_alike = self.next_alike();
        next_alike.iter().flatten().for_each(|member| after_alike.insert(*member));
        // Members that may come now: of those alike, the first that is left.
        let mut first = Set::full(self.members.len());
        after_alike.iter().for_each(|member| first.remove(member));
        let n_ends = self.n_ends(search, prefix)?;
        let mut steps = vec![Step { before: None, edge: None, point: 0 }];
        let mut open = vec![(0, Set::full(self.members.len()), first)];
        let mut known = HashSet::new();
        let mut ways = Ways::default();
        while let Some((step, left, ready)) = open.pop() {
            search.step()?;
            let point = &self.points[steps[step].point];
            if left.is_empty() {
                let way = Way { at: point.at.clone(), text: text(&steps, step) };
                for way in search.each_then(vec![way], "}", self.node, prefix)? {
                    ways.add(way);
                }
                if ways.list.len() == n_ends {
                    break;
                }
                continue;
            }
            if !point.ahead.contains_all(&left) {
                continue;
            }
            // The last is looked at first.
            for edge in point.edges.iter().rev().filter(|edge| ready.contains(edge.member)) {
                let (mut left, mut ready) = (left.clone(), ready.clone());
                left.remove(edge.member);
                ready.remove(edge.member);
                next_alike[edge.member].iter().for_each(|member| ready.insert(*member));
                if known.insert((edge.to, left.clone())) {
                    steps.push(Step { before: Some(step), edge: Some(edge), point: edge.to });
                    open.push((steps.len() - 1, left, ready));
                }
            }
        }
        Ok(ways.list)
    }

    /// Places after the object that some order might lead to.
    fn n_ends(&self, search: &mut Search<'_>, prefix: &Prefix<'_>) -> Result<usize, OutOfSteps> {
        search.silently(|search| {
            let mut places = HashSet::new();
            for point in &self.points {
                let end = search.offer(&point.at, "}", prefix, self.node)?;
                places.extend(end.map(|at| at.place()));
            }
            Ok(places.len())
        })
    }
}

/// A member on the way through the graph.
struct Step<'g> {
    before: Option<usize>,
    edge: Option<&'g Edge>,
    point: usize,
}

fn text(steps: &[Step<'_>], last: usize) -> String {
    let mut pieces = Vec::new();
    let mut at = Some(last);
    while let Some(step) = at {
        pieces.extend(steps[step].edge.map(|edge| edge.text.as_str()));
        at = steps[step].before;
    }
    std::iter::once("{").chain(pieces.into_iter().rev()).collect()
}

/// A set of members, one bit each.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Set(Box<[u64]>);

impl Set {
    fn empty(n: usize) -> Self {
        Self(vec![0; n.div_ceil(64)].into_boxed_slice())
    }

    fn full(n: usize) -> Self {
        let mut set = Self::empty(n);
        (0..n).for_each(|member| set.insert(member));
        set
    }

    fn insert(&mut self, member: usize) {
        self.0[member / 64] |= 1 << (member % 64);
    }

    fn remove(&mut self, member: usize) {
        self.0[member / 64] &= !(1 << (member % 64));
    }

    fn contains(&self, member: usize) -> bool {
        self.0[member / 64] >> (member % 64) & 1 == 1
    }

    fn contains_all(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0).all(|(own, other)| own & other == *other)
    }

    fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    fn extend(&mut self, other: &Self) {
        self.0.iter_mut().zip(&other.0).for_each(|(own, other)| *own |= other);
    }

    fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.0.len() * 64).filter(|member| self.contains(*member))
    }
}
