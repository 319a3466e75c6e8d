//! Any text as GBNF: what is read is sound, is printed and read as the same, and llama.cpp takes it too.
#![no_main]

use call_me_maybe::grammar::check::check;
use call_me_maybe::grammar::recognize::Recognizer;
use call_me_maybe::grammar::{parse, print};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let bytes_of = |token: parse::Token<'_>| match token {
        parse::Token::Id(id @ 0..4) => {
            Some([&b""[..], b"a", b"\xc3", "é".as_bytes()][id as usize].to_vec())
        }
        parse::Token::Id(_) => None,
        parse::Token::Text(name) => (name.len() < 6).then(|| name.as_bytes().to_vec()),
    };
    let _ = parse::gbnf(text, Some(&bytes_of));
    let grammar = match parse::gbnf(text, None) {
        Ok(grammar) => grammar,
        Err(error) => {
            // What is said of it holds a place in the text.
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    assert_eq!(check(&grammar), Ok(()));
    let printed = print::gbnf(&grammar);
    match parse::gbnf(&printed, None) {
        // As text, because `[A-B]` is printed as `[AB]`, which is two ranges.
        Ok(read) => assert_eq!(print::gbnf(&read), printed, "read as something else"),
        Err(error) => panic!("what is printed is not read: {error}\n{printed}"),
    }
    assert!(Recognizer::new(&grammar).is_ok());
    // Not the text itself: llama.cpp takes a repetition without end of what may be empty for left recursion.
    fuzz::llama::load(&printed);
});
