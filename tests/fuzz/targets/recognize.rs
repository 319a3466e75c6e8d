//! A small grammar and a short text: all that the recognizer says agrees with a matcher that tries
//! every way, and with itself.
#![no_main]

use call_me_maybe::grammar::recognize::Recognizer;
use call_me_maybe::grammar::recognize::mask::TokenTrie;
use call_me_maybe::grammar::{check::check, parse, print};
use fuzz::grammars::{Case, case};
use fuzz::matcher::Matcher;
use libfuzzer_sys::fuzz_target;

/// First bytes of the characters that grammars have, bytes within them, and others.
const PROBES: [u8; 13] =
    [b'a', b'b', b'c', b'd', 0, 0x80, 0xa8, 0xa9, 0xbf, 0xc3, 0xe0, 0xef, 0xf0];

fuzz_target!(|data: &[u8]| {
    let Ok(Case { grammar, text, tokens }) = case(data) else { return };
    let start = match Recognizer::new(&grammar) {
        Ok(start) => start,
        Err(error) => return assert_eq!(check(&grammar), Err(error)),
    };
    let gbnf = print::gbnf(&grammar);
    if std::env::var_os("CALLME_FUZZ_SHOW").is_some() {
        eprintln!("{gbnf}\n{:?}\n{tokens:?}", String::from_utf8_lossy(&text));
    }
    fuzz::llama::load(&gbnf);
    let matcher = Matcher::new(&grammar);
    let trie = TokenTrie::new((0..).zip(tokens.iter().map(Vec::as_slice)));
    let mut at = start.clone();
    let mut done = 0;
    loop {
        let so_far = &text[..done];
        says_the_same(&at, &matcher, so_far);
        tokens_agree(&at, &matcher, so_far, &tokens, &trie);
        closes(&at, &start, so_far);
        let Some(byte) = text.get(done) else { break };
        let place = at.place();
        if !at.push(*byte) {
            assert_eq!(at.place(), place, "refused and changed");
            break;
        }
        done += 1;
    }
    assert_eq!(start.accepts(&text), done == text.len());
    let mut whole = start.clone();
    assert_eq!(whole.push_all(&text), if done == text.len() { Ok(()) } else { Err(done) });
    let can_end = at.can_end();
    if done == text.len() {
        assert_eq!((whole.can_end(), whole.allowed()), (can_end, at.allowed()));
    } else {
        assert_eq!(whole.place(), start.place(), "refused and changed");
    }
    let read = parse::gbnf(&gbnf, None).unwrap_or_else(|error| panic!("{error}\n{gbnf}"));
    let mut read = Recognizer::new(&read).expect("what is read is sound");
    let n_taken = read.push_all(&text).err().unwrap_or(text.len());
    assert_eq!(n_taken, done, "read as something else:\n{gbnf}");
    assert!(done < text.len() || read.can_end() == can_end, "read as something else:\n{gbnf}");
});

fn says_the_same(at: &Recognizer, matcher: &Matcher<'_>, so_far: &[u8]) {
    assert_eq!(at.can_end(), matcher.is_whole(so_far), "the end");
    let allowed = at.allowed();
    assert_eq!(at.is_over(), at.can_end() && allowed.is_empty());
    for byte in PROBES {
        let expected = matcher.begins(&[so_far, &[byte]].concat());
        assert_eq!(allowed.contains(byte), expected, "allows {byte:#x}");
        assert_eq!(at.accepts(&[byte]), expected, "accepts {byte:#x}");
        assert_eq!(at.clone().push(byte), expected, "takes {byte:#x}");
    }
    let mut forced = at.clone();
    for byte in at.forced() {
        assert_eq!((forced.can_end(), forced.allowed().only()), (false, Some(byte)), "forced");
        assert!(forced.push(byte));
    }
    assert!(forced.can_end() || forced.allowed().only().is_none(), "forced further");
    let _ = at.expected();
}

fn tokens_agree(
    at: &Recognizer,
    matcher: &Matcher<'_>,
    so_far: &[u8],
    tokens: &[Vec<u8>],
    trie: &TokenTrie,
) {
    // Twice, as the second comes from what is kept.
    let masks = [at.mask(trie), at.mask(trie)];
    for (id, token) in (0..).zip(tokens) {
        let expected = token.is_empty() || matcher.begins(&[so_far, token].concat());
        assert_eq!(at.accepts(token), expected, "accepts {token:?}");
        let taken = at.clone().push_all(token);
        assert_eq!(taken.is_ok(), expected, "takes {token:?}");
        for mask in &masks {
            assert_eq!(mask.contains(id), expected && !token.is_empty(), "the mask of {token:?}");
        }
    }
}

fn closes(at: &Recognizer, start: &Recognizer, so_far: &[u8]) {
    let closing = at.closing();
    assert!(closing.is_empty() || at.in_argument(), "outside an argument");
    let mut closed = at.clone();
    assert_eq!(closed.close_argument(), closing);
    assert!(!closed.in_argument(), "still in the argument");
    assert!(start.accepts(&[so_far, &closing].concat()), "closed by what is refused");
    assert!(
        !at.in_argument() || closed.can_end() || !closed.allowed().is_empty(),
        "closed for good"
    );
}
