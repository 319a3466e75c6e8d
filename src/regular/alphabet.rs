//! Symbols: the coarsest cut of the code points that a collection of sets is made of.
//!
//! A table over 1.1 million code points would be too large; over the few kinds of code point that an
//! automaton tells apart it is small.
//!
//! **Invariant:** two code points have the same symbol exactly when every set holds both or neither;
//! those in no set have none.

/// A set of code points: inclusive ranges, sorted, disjoint.
pub(super) type Set = Vec<(char, char)>;

/// How many code points are taken out of the middle, for the surrogates.
const SURROGATES: u32 = 0x800;

/// All code points.
pub(super) const ANY: (char, char) = ('\0', char::MAX);

/// The code points in a row, without the hole of the surrogates.
pub(super) fn ordinal(c: char) -> u32 {
    let code = u32::from(c);
    if code < 0xd800 { code } else { code - SURROGATES }
}

/// The code point of an ordinal.
pub(super) fn character(ordinal: u32) -> char {
    let code = if ordinal < 0xd800 { ordinal } else { ordinal + SURROGATES };
    char::from_u32(code).unwrap_or(char::MAX)
}

/// Adds a range behind those of a sorted set, joined with the last where they touch.
pub(super) fn push(set: &mut Set, first: char, last: char) {
    match set.last_mut() {
        Some((_, end)) if ordinal(first) <= ordinal(*end) + 1 => *end = last.max(*end),
        _ => set.push((first, last)),
    }
}

/// Ranges in any order, also overlapping ones, as a set.
pub(super) fn set_of(mut ranges: Vec<(char, char)>) -> Set {
    ranges.sort_unstable();
    let mut set = Set::with_capacity(ranges.len());
    for (first, last) in ranges {
        push(&mut set, first, last);
    }
    set
}

/// All code points that are not in the set.
pub(super) fn complement(set: &[(char, char)]) -> Set {
    let mut others = Set::with_capacity(set.len() + 1);
    let mut next = 0;
    for &(first, last) in set {
        if next < ordinal(first) {
            others.push((character(next), character(ordinal(first) - 1)));
        }
        next = ordinal(last) + 1;
    }
    if next <= ordinal(char::MAX) {
        others.push((character(next), char::MAX));
    }
    others
}

/// The symbols of a collection of sets.
#[derive(Debug)]
pub(super) struct Alphabet {
    /// First ordinal of every interval, rising.
    cuts: Vec<u32>,
    /// The symbol of each interval; 0 where it is in no set.
    symbols: Vec<u32>,
    /// The intervals of each symbol.
    intervals: Vec<Vec<u32>>,
}

impl Alphabet {
    /// Cuts the code points wherever a set begins or ends, and joins what no set tells apart.
    pub(super) fn new<'s>(sets: impl Iterator<Item = &'s [(char, char)]> + Clone) -> Self {
        let mut cuts: Vec<u32> = sets
            .clone()
            .flatten()
            .flat_map(|&(first, last)| [ordinal(first), ordinal(last) + 1])
            .collect();
        cuts.sort_unstable();
        cuts.dedup();
        let mut alphabet = Self { symbols: vec![0; cuts.len()], cuts, intervals: Vec::new() };
        // Every set splits each symbol that it holds a part of: the part gets a new symbol.
        let mut sizes = vec![alphabet.cuts.len()];
        let mut parts: Vec<(u32, usize, u32)> = Vec::new();
        let mut part_of: Vec<usize> = vec![usize::MAX];
        let mut inside: Vec<usize> = Vec::new();
        for set in sets {
            parts.clear();
            inside.clear();
            inside.extend(alphabet.inside(set));
            for &interval in &inside {
                let symbol = alphabet.symbols[interval] as usize;
                if part_of[symbol] == usize::MAX {
                    part_of[symbol] = parts.len();
                    parts.push((alphabet.symbols[interval], 0, 0));
                }
                parts[part_of[symbol]].1 += 1;
            }
            for (symbol, n, new) in &mut parts {
                let old = *symbol as usize;
                // A whole symbol keeps its number, save that of the code points in no set.
                if *n == sizes[old] && old != 0 {
                    *new = *symbol;
                    continue;
                }
                *new = u32::try_from(sizes.len()).unwrap_or(u32::MAX);
                sizes[old] -= *n;
                sizes.push(*n);
                part_of.push(usize::MAX);
            }
            for &interval in &inside {
                let symbol = alphabet.symbols[interval] as usize;
                alphabet.symbols[interval] = parts[part_of[symbol]].2;
            }
            for (symbol, ..) in &parts {
                part_of[*symbol as usize] = usize::MAX;
            }
        }
        alphabet.intervals = vec![Vec::new(); sizes.len()];
        for (interval, symbol) in (0_u32..).zip(&alphabet.symbols) {
            alphabet.intervals[*symbol as usize].push(interval);
        }
        alphabet
    }

    /// One more than the largest symbol.
    pub(super) fn len(&self) -> usize {
        self.intervals.len()
    }

    /// The symbols of one of the sets, each once.
    pub(super) fn symbols(&self, set: &[(char, char)]) -> Vec<u32> {
        let mut symbols: Vec<u32> = self.inside(set).map(|i| self.symbols[i]).collect();
        symbols.sort_unstable();
        symbols.dedup();
        symbols
    }

    /// The code points of these symbols.
    pub(super) fn set(&self, symbols: impl Iterator<Item = u32>) -> Set {
        let mut intervals: Vec<u32> =
            symbols.flat_map(|symbol| &self.intervals[symbol as usize]).copied().collect();
        intervals.sort_unstable();
        let mut set = Set::new();
        for interval in intervals {
            let interval = interval as usize;
            // The last cut is the end of a range, so no interval of a set begins there.
            let end = self.cuts.get(interval + 1).map_or(0, |end| end - 1);
            push(&mut set, character(self.cuts[interval]), character(end));
        }
        set
    }

    /// The intervals inside the set.
    fn inside(&self, set: &[(char, char)]) -> impl Iterator<Item = usize> {
        let cuts = &self.cuts;
        set.iter().flat_map(move |&(first, last)| {
            let start = cuts.partition_point(|cut| *cut < ordinal(first));
            let end = ordinal(last);
            (start..cuts.len()).take_while(move |at| cuts[*at] <= end)
        })
    }
}
