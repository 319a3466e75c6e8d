//! URIs, IRIs and templates of them: RFC 3986, 3987 and 6570.

use super::network::ipv6;

/// What IRIs have more than URIs, for classes.
struct Alphabet {
    /// RFC 3987 `ucschar`.
    everywhere: &'static str,
    /// RFC 3987 `iprivate`.
    in_query: &'static str,
}

const ASCII: Alphabet = Alphabet { everywhere: "", in_query: "" };

const UNICODE: Alphabet = Alphabet {
    everywhere: "\u{a0}-\u{d7ff}\u{f900}-\u{fdcf}\u{fdf0}-\u{ffef}\u{10000}-\u{1fffd}\
                 \u{20000}-\u{2fffd}\u{30000}-\u{3fffd}\u{40000}-\u{4fffd}\u{50000}-\u{5fffd}\
                 \u{60000}-\u{6fffd}\u{70000}-\u{7fffd}\u{80000}-\u{8fffd}\u{90000}-\u{9fffd}\
                 \u{a0000}-\u{afffd}\u{b0000}-\u{bfffd}\u{c0000}-\u{cfffd}\u{d0000}-\u{dfffd}\
                 \u{e1000}-\u{efffd}",
    in_query: "\u{e000}-\u{f8ff}\u{f0000}-\u{ffffd}\u{100000}-\u{10fffd}",
};

/// RFC 3986 `unreserved` and `sub-delims`, for a class that ends after it.
const NAME: &str = "A-Za-z0-9._~!$&'()*+,;=-";
const ENCODED: &str = "%[0-9A-Fa-f]{2}";

impl Alphabet {
    /// One character of `NAME` or of `more`, or an encoded one.
    fn one_of(&self, more: &str) -> String {
        format!("(?:[{more}{}{NAME}]|{ENCODED})", self.everywhere)
    }

    /// `//`, an authority, and a path that is empty or begins with `/`.
    fn network_path(&self) -> String {
        let future = format!("[Vv][0-9A-Fa-f]+\\.[:{NAME}]+");
        let host = format!("(?:{}*|\\[(?:{}|{future})\\])", self.one_of(""), ipv6());
        let segment = self.one_of(":@");
        format!("\\/\\/(?:{}*@)?{host}(?::[0-9]*)?(?:\\/{segment}*)*", self.one_of(":"))
    }

    /// A path that begins with `/`, but not with two.
    fn absolute_path(&self) -> String {
        let segment = self.one_of(":@");
        format!("\\/(?:{segment}+(?:\\/{segment}*)*)?")
    }

    fn query_and_fragment(&self) -> String {
        let private = self.in_query;
        let query = self.one_of(&format!(":@\\/?{private}"));
        let fragment = self.one_of(":@\\/?");
        format!("(?:\\?{query}*)?(?:#{fragment}*)?")
    }

    fn absolute(&self) -> String {
        let (network, path) = (self.network_path(), self.absolute_path());
        let segment = self.one_of(":@");
        let rootless = format!("{segment}+(?:\\/{segment}*)*");
        let rest = self.query_and_fragment();
        format!("[A-Za-z][A-Za-z0-9+.-]*:(?:{network}|{path}|{rootless})?{rest}")
    }

    fn reference(&self) -> String {
        let (network, path) = (self.network_path(), self.absolute_path());
        // A colon in the first segment would make what is before it a scheme.
        let (first, segment) = (self.one_of("@"), self.one_of(":@"));
        let rootless = format!("{first}+(?:\\/{segment}*)*");
        let rest = self.query_and_fragment();
        format!("(?:{}|(?:{network}|{path}|{rootless})?{rest})", self.absolute())
    }
}

/// RFC 3986 `URI`.
pub(super) fn uri() -> String {
    ASCII.absolute()
}

/// RFC 3986 `URI-reference`.
pub(super) fn uri_reference() -> String {
    ASCII.reference()
}

/// RFC 3987 `IRI`.
pub(super) fn iri() -> String {
    UNICODE.absolute()
}

/// RFC 3987 `IRI-reference`.
pub(super) fn iri_reference() -> String {
    UNICODE.reference()
}

/// RFC 6570, all four levels and the operators kept for extensions.
pub(super) fn uri_template() -> String {
    let literal =
        format!("[!#$&-;=?-\\[\\]_a-z~{}{}]|{ENCODED}", UNICODE.everywhere, UNICODE.in_query);
    let name = format!("(?:[A-Za-z0-9_]|{ENCODED})+");
    let variable = format!("{name}(?:\\.{name})*(?::[1-9][0-9]{{0,3}}|\\*)?");
    format!("(?:{literal}|\\{{[+#.\\/;?&=,!@|]?{variable}(?:,{variable})*\\}})*")
}
