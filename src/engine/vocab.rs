//! The model's tokens as bytes and kinds, sorted for prefix searches; no I/O here.
//!
//! **Invariant:** `sorted` holds exactly the tokens of kind [`TokenKind::Text`] that have bytes, in
//! the order of their bytes.

use std::ops::Range;
use std::sync::OnceLock;

use crate::grammar::recognize::mask::TokenTrie;

/// Index of a token in the model's vocabulary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TokenId(pub u32);

impl TokenId {
    /// The index as a `usize`.
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// What a token stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenKind {
    /// Text, or one byte of it: the only kind that may be part of a call.
    Text,
    /// A marker of the chat format (llama.cpp's CONTROL and `USER_DEFINED`).
    Special,
    /// Not for use: unknown, unused.
    Unusable,
}

/// One token.
#[derive(Debug, Clone)]
pub struct Token {
    /// Its bytes; a byte-level token can be part of a character.
    pub bytes: Vec<u8>,
    /// What it stands for.
    pub kind: TokenKind,
    /// Whether it ends a generation.
    pub is_end: bool,
}

/// All tokens of a model.
#[derive(Debug)]
pub struct Vocab {
    tokens: Vec<Token>,
    sorted: Vec<TokenId>,
    /// Built when it is first needed: most calls never need a mask.
    trie: OnceLock<TokenTrie>,
    bos: Option<TokenId>,
}

impl Vocab {
    /// Sorts `tokens`, which are in the order of their ids; `bos` is the token that every text of
    /// this model must begin with, if there is one.
    #[must_use]
    pub fn new(tokens: Vec<Token>, bos: Option<TokenId>) -> Self {
        let mut sorted: Vec<TokenId> = (0u32..)
            .zip(&tokens)
            .filter(|(_, token)| token.kind == TokenKind::Text && !token.bytes.is_empty())
            .map(|(id, _)| TokenId(id))
            .collect();
        sorted.sort_by(|a, b| {
            tokens[a.index()].bytes.cmp(&tokens[b.index()].bytes).then_with(|| a.cmp(b))
        });
        Self { tokens, sorted, trie: OnceLock::new(), bos }
    }

    /// How many tokens there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tokens.len()
    }

    /// Whether there is no token at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }

    /// The token that every text must begin with, if there is one.
    #[must_use]
    pub fn bos(&self) -> Option<TokenId> {
        self.bos
    }

    /// Bytes of a token; empty for an id that does not exist.
    #[must_use]
    pub fn bytes(&self, id: TokenId) -> &[u8] {
        self.tokens.get(id.index()).map_or(&[], |token| &token.bytes)
    }

    /// Kind of a token.
    #[must_use]
    pub fn kind(&self, id: TokenId) -> TokenKind {
        self.tokens.get(id.index()).map_or(TokenKind::Unusable, |token| token.kind)
    }

    /// Whether a token ends a generation.
    #[must_use]
    pub fn is_end(&self, id: TokenId) -> bool {
        self.tokens.get(id.index()).is_some_and(|token| token.is_end)
    }

    /// Texts of all special tokens, as a chat template would write them.
    pub fn specials(&self) -> impl Iterator<Item = &[u8]> {
        self.tokens
            .iter()
            .filter(|token| token.kind == TokenKind::Special)
            .map(|token| token.bytes.as_slice())
    }

    /// Text tokens in the order of their bytes.
    #[must_use]
    pub fn sorted(&self) -> &[TokenId] {
        &self.sorted
    }

    /// The same tokens as a trie, for token masks.
    #[must_use]
    pub fn trie(&self) -> &TokenTrie {
        let tokens = || self.sorted.iter().map(|id| (id.0, self.bytes(*id)));
        self.trie.get_or_init(|| TokenTrie::new(tokens()))
    }

    /// Where in [`Vocab::sorted`] the tokens stand that begin with `prefix`, within `range`.
    #[must_use]
    pub fn with_prefix(&self, prefix: &[u8], range: Range<usize>) -> Range<usize> {
        let slice = &self.sorted[range.clone()];
        let first = slice.partition_point(|id| self.bytes(*id) < prefix);
        let count = slice[first..].partition_point(|id| self.bytes(*id).starts_with(prefix));
        range.start + first..range.start + first + count
    }

    /// Tokens of `bytes`, the longest first at every place: for texts that the model's own
    /// tokenizer would not give back unchanged. `None` where a byte has no token.
    #[must_use]
    pub fn longest_match(&self, bytes: &[u8]) -> Option<Vec<TokenId>> {
        let mut tokens = Vec::new();
        let mut rest = bytes;
        while !rest.is_empty() {
            let mut best = None;
            let mut range = 0..self.sorted.len();
            for n in 1..=rest.len() {
                range = self.with_prefix(&rest[..n], range);
                let Some(first) = self.sorted[range.clone()].first() else { break };
                if self.bytes(*first).len() == n {
                    best = Some(*first);
                }
            }
            let token = best?;
            rest = &rest[self.bytes(token).len()..];
            tokens.push(token);
        }
        Some(tokens)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vocab(texts: &[&str]) -> Vocab {
        let token = |text: &&str| Token {
            bytes: text.as_bytes().to_vec(),
            kind: if text.starts_with('<') { TokenKind::Special } else { TokenKind::Text },
            is_end: false,
        };
        Vocab::new(texts.iter().map(token).collect(), None)
    }

    #[test]
    fn prefix_ranges_hold_what_begins_with_the_prefix() {
        let v = vocab(&["b", "ab", "a", "<a>", "abc", "ac"]);
        let names = |r: Range<usize>| -> Vec<&[u8]> {
            v.sorted()[r].iter().map(|id| v.bytes(*id)).collect()
        };
        let all = 0..v.sorted().len();
        assert_eq!(names(v.with_prefix(b"a", all.clone())), [&b"a"[..], b"ab", b"abc", b"ac"]);
        assert_eq!(names(v.with_prefix(b"ab", all.clone())), [&b"ab"[..], b"abc"]);
        assert_eq!(names(v.with_prefix(b"", all.clone())).len(), 5);
        assert!(v.with_prefix(b"x", all).is_empty());
    }

    #[test]
    fn longest_match_covers_all_bytes_or_says_no() {
        let v = vocab(&["b", "ab", "a", "<a>", "abc"]);
        let ids = |t: &str| v.longest_match(t.as_bytes());
        assert_eq!(ids("abcab"), Some(vec![TokenId(4), TokenId(1)]));
        assert_eq!(ids("aab"), Some(vec![TokenId(2), TokenId(1)]));
        assert_eq!(ids("ax"), None);
        assert_eq!(ids(""), Some(vec![]));
    }
}
