//! A file of the Hugging Face hub -> bytes, over HTTPS.
//!
//! What an earlier run left is resumed with a `Range` request (RFC 9110, section 14). No `If-Range` goes with it:
//! the hash of the whole decides, so a file that was replaced in between is found out all the same.
//!
//! **Invariant:** `ureq` is named in this file alone, and its proxy settings never come from the environment.

use std::io::{self, Read};

use ureq::http::{Response, StatusCode, header};
use ureq::tls::{RootCerts, TlsConfig};
use ureq::{Agent, Body, Proxy, ProxyProtocol};

use super::super::{HubFile, ModelError, Proxies};
use super::part::BLOCK;
use super::{FetchConfig, Work};

/// Brings the whole file into `work`'s part file, whose hash is not checked here.
pub(super) fn fetch(file: &HubFile, work: &mut Work) -> Result<(), ModelError> {
    let url = file.url(&work.config.endpoint);
    let agent = agent(work.config, &url)?;
    work.part.resume()?;
    if work.model.size_bytes.is_some_and(|size| work.part.len() > size) {
        work.part.restart()?;
    }
    // The second round is for a server that refuses to go on from where the part file ends.
    for _ in 0..2 {
        let have = work.part.len();
        if work.model.size_bytes == Some(have) {
            return Ok(());
        }
        work.go_on()?;
        let mut request = agent.get(&url);
        if have > 0 {
            request = request.header(header::RANGE, format!("bytes={have}-"));
        }
        let response = request.call().map_err(|source| unreachable(&url, source))?;
        let (start, size) = content_range(&response);
        match response.status() {
            StatusCode::OK => {
                if have > 0 {
                    work.meter.say("the server cannot resume: starting from the beginning");
                    work.part.restart()?;
                }
                let size = content_length(&response);
                return receive(response, size, work);
            }
            StatusCode::PARTIAL_CONTENT if have > 0 && start == Some(have) => {
                work.meter.say(&format!("resuming at byte {have}"));
                return receive(response, size, work);
            }
            StatusCode::RANGE_NOT_SATISFIABLE if have > 0 && size == Some(have) => return Ok(()),
            StatusCode::PARTIAL_CONTENT | StatusCode::RANGE_NOT_SATISFIABLE if have > 0 => {
                work.meter.say("what is there cannot be resumed: starting from the beginning");
                work.part.restart()?;
            }
            status => return Err(ModelError::Status { url, status: status.as_u16() }),
        }
    }
    Err(ModelError::Status { url, status: StatusCode::RANGE_NOT_SATISFIABLE.as_u16() })
}

/// Copies the body; `total` is the size of the whole file as the server says it.
fn receive(
    response: Response<Body>,
    total: Option<u64>,
    work: &mut Work,
) -> Result<(), ModelError> {
    if let (Some(expected), Some(got)) = (work.model.size_bytes, total) {
        if expected != got {
            return Err(ModelError::WrongSize { name: work.model.name.clone(), expected, got });
        }
    }
    let total = total.or(work.model.size_bytes);
    if let Some(total) = total {
        work.part.check_space(total)?;
    }
    work.meter.start(work.part.len(), total);
    let broken = |work: &Work, source| ModelError::Broken {
        part: work.part.path().to_owned(),
        received: work.part.len(),
        total,
        source,
    };
    let mut body = response.into_body().into_reader();
    let mut block = vec![0; BLOCK];
    loop {
        match body.read(&mut block) {
            Ok(0) => break,
            Ok(n) => work.take(&block[..n])?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => work.go_on()?,
            Err(error) => return Err(broken(work, error)),
        }
    }
    match total {
        Some(total) if work.part.len() < total => {
            Err(broken(work, io::ErrorKind::UnexpectedEof.into()))
        }
        _ => Ok(()),
    }
}

fn agent(config: &FetchConfig, url: &str) -> Result<Agent, ModelError> {
    let proxy = proxy(&config.proxies, url).map_err(|source| unreachable(url, source))?;
    let tls = TlsConfig::builder().root_certs(RootCerts::PlatformVerifier).build();
    let settings = Agent::config_builder()
        .http_status_as_error(false)
        .user_agent(concat!("callme/", env!("CARGO_PKG_VERSION")))
        .tls_config(tls)
        .proxy(proxy)
        .timeout_resolve(Some(config.connect_timeout))
        .timeout_connect(Some(config.connect_timeout))
        .timeout_per_read(Some(config.stall_timeout))
        .timeout_per_write(Some(config.stall_timeout));
    Ok(settings.build().into())
}

/// The proxy for a URL, as curl would choose it: the variable of the scheme before `all_proxy`. ureq's own reading
/// takes `ALL_PROXY` first and uses `HTTP_PROXY` for `https:` too.
fn proxy(proxies: &Proxies, url: &str) -> Result<Option<Proxy>, ureq::Error> {
    let of_scheme = if url.starts_with("https:") { &proxies.https } else { &proxies.http };
    let Some(setting) = of_scheme.as_ref().or(proxies.all.as_ref()) else { return Ok(None) };
    let parsed = Proxy::new(setting.trim())?;
    // Without its socks feature ureq would connect past the proxy and only log it.
    if !matches!(parsed.protocol(), ProxyProtocol::Http | ProxyProtocol::Https) {
        let reason = format!(
            "a {} proxy is set, and only http: and https: ones are supported",
            parsed.protocol()
        );
        return Err(ureq::Error::Other(reason.into()));
    }
    let mut builder = Proxy::builder(parsed.protocol()).host(parsed.host()).port(parsed.port());
    if let Some(name) = parsed.username() {
        builder = builder.username(name);
    }
    if let Some(password) = parsed.password() {
        builder = builder.password(password);
    }
    // ureq takes `example.com` to mean that host alone; everywhere else its subdomains are meant too.
    let entries = proxies.none.iter().flat_map(|list| list.split([',', ' ']));
    for entry in entries.map(|entry| entry.trim().trim_start_matches("*.").trim_start_matches('.'))
    {
        let port = entry.rsplit_once(':').filter(|(host, _)| !host.contains(':'));
        let host = port.map_or(entry, |(host, _)| host);
        if !host.is_empty() {
            builder = builder.no_proxy(host).no_proxy(&format!(".{host}"));
        }
    }
    builder.build().map(Some)
}

fn unreachable(url: &str, source: ureq::Error) -> ModelError {
    ModelError::Unreachable { url: url.to_owned(), source: source.into() }
}

fn content_length(response: &Response<Body>) -> Option<u64> {
    text(response, &header::CONTENT_LENGTH)?.trim().parse().ok()
}

/// First byte and size of the whole in `bytes 5-9/10` or `bytes */10` (RFC 9110, section 14.4).
fn content_range(response: &Response<Body>) -> (Option<u64>, Option<u64>) {
    let parts = text(response, &header::CONTENT_RANGE)
        .and_then(|text| text.trim().strip_prefix("bytes ")?.split_once('/'));
    let Some((range, size)) = parts else { return (None, None) };
    let start = range.split_once('-').and_then(|(start, _)| start.trim().parse().ok());
    (start, size.trim().parse().ok())
}

fn text<'a>(response: &'a Response<Body>, name: &header::HeaderName) -> Option<&'a str> {
    response.headers().get(name)?.to_str().ok()
}
