//! Environment variables -> [`Environment`].
//!
//! **Invariant:** nothing else under `models` reads the environment, so tests hand in values of their own. (pip, a
//! process of its own, reads its variables itself.)

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;

use etcetera::BaseStrategy;

/// What the environment says about models; an empty variable counts as unset.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Environment {
    /// `CALLME_MODELS`: a folder with models.
    pub models_dir: Option<PathBuf>,
    /// The user's data folder, where the platform has one.
    pub data_dir: Option<PathBuf>,
    /// `HF_ENDPOINT`: where the Hugging Face hub is, the hub's own variable.
    pub endpoint: Option<String>,
    /// `PYTHON`: the Python that has pip.
    pub python: Option<OsString>,
    /// The proxies of each scheme.
    pub proxies: Proxies,
}

/// `https_proxy`, `http_proxy`, `all_proxy` and `no_proxy`; the lower-case spelling first, then the upper-case one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Proxies {
    /// The proxy for `https:` URLs.
    pub https: Option<String>,
    /// The proxy for `http:` URLs.
    pub http: Option<String>,
    /// The proxy for a scheme without one of its own.
    pub all: Option<String>,
    /// Hosts that are asked without a proxy, separated by commas; a domain stands for its subdomains too.
    pub none: Option<String>,
}

impl Environment {
    /// Reads this process's environment.
    #[must_use]
    pub fn read() -> Self {
        let text = |name: &str| set(name)?.into_string().ok();
        let either = |name: &str| text(name).or_else(|| text(&name.to_ascii_uppercase()));
        let data_dir = etcetera::choose_base_strategy().ok().map(|base| base.data_dir());
        Self {
            models_dir: set("CALLME_MODELS").map(PathBuf::from),
            data_dir,
            endpoint: text("HF_ENDPOINT"),
            python: set("PYTHON"),
            proxies: Proxies {
                https: either("https_proxy"),
                http: either("http_proxy"),
                all: either("all_proxy"),
                none: either("no_proxy"),
            },
        }
    }
}

fn set(name: &str) -> Option<OsString> {
    env::var_os(name).filter(|value| !value.is_empty())
}
