//! The prompt's beginning that many prompts share, decoded once and kept in a sequence of its own.
//!
//! **Invariant:** `tokens` are exactly what the cache holds for [`SHARED`].

use super::{Backend, DecodeError, Row, SequenceId, TokenId};

/// The sequence that holds the shared prefix.
pub const SHARED: SequenceId = SequenceId(0);

/// What is in the cache for [`SHARED`].
#[derive(Debug, Default)]
pub struct Prefix {
    tokens: Vec<TokenId>,
}

impl Prefix {
    /// Tokens held.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tokens.len()
    }

    /// Whether nothing is held.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }

    /// Makes the cache hold `tokens`, decoding what it lacks.
    ///
    /// # Errors
    /// [`DecodeError::Interrupted`] where `interrupted` says so, else what the backend says. The
    /// prefix is then empty.
    pub fn hold<B: Backend>(
        &mut self,
        backend: &mut B,
        tokens: &[TokenId],
        interrupted: &dyn Fn() -> bool,
    ) -> Result<(), DecodeError> {
        if self.tokens == tokens {
            return Ok(());
        }
        self.tokens.clear();
        backend.remove(SHARED)?;
        backend.reserve(u32::try_from(tokens.len()).unwrap_or(u32::MAX))?;
        if let Err(error) = Self::decode(backend, tokens, interrupted) {
            backend.remove(SHARED)?;
            return Err(error);
        }
        self.tokens = tokens.to_vec();
        Ok(())
    }

    fn decode<B: Backend>(
        backend: &mut B,
        tokens: &[TokenId],
        interrupted: &dyn Fn() -> bool,
    ) -> Result<(), DecodeError> {
        let mut position = 0;
        for chunk in tokens.chunks(backend.max_rows()) {
            if interrupted() {
                return Err(DecodeError::Interrupted);
            }
            let rows: Vec<Row> = (position..)
                .zip(chunk)
                .map(|(position, &token)| Row { token, position, sequence: SHARED, logits: false })
                .collect();
            position += u32::try_from(chunk.len()).unwrap_or(u32::MAX);
            backend.decode(&rows)?;
        }
        Ok(())
    }

    /// Lets sequence `to` begin with what it shares with `prompt`, and says how many tokens that
    /// is: never the whole prompt, since its last token must be decoded for its logits.
    ///
    /// # Errors
    /// What the backend says.
    pub fn lend<B: Backend>(
        &self,
        backend: &mut B,
        to: SequenceId,
        prompt: &[TokenId],
    ) -> Result<u32, DecodeError> {
        let most = prompt.len().saturating_sub(1);
        let shared = self.tokens.iter().zip(&prompt[..most]).take_while(|(a, b)| a == b).count();
        let n = if shared == self.tokens.len() || backend.copies_part() { shared } else { 0 };
        let n = u32::try_from(n).unwrap_or(u32::MAX);
        if n == 0 {
            backend.remove(to)?;
        } else {
            backend.copy(SHARED, to, n)?;
        }
        Ok(n)
    }
}

/// The tokens that two prompts begin with in common.
#[must_use]
pub fn common<'a>(a: &'a [TokenId], b: &[TokenId]) -> &'a [TokenId] {
    &a[..a.iter().zip(b).take_while(|(a, b)| a == b).count()]
}
