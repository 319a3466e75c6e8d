//! An HTTP server that gives prepared answers, on this machine alone.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use super::body;

/// One answer of the server.
#[derive(Clone)]
pub(super) struct Reply {
    pub(super) head: String,
    pub(super) body: Vec<u8>,
    /// Keep the connection open after the body, until the client closes it.
    pub(super) hang: bool,
}

pub(super) fn reply(status: &str, headers: &str, body: &[u8]) -> Reply {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n{headers}\r\n"
    );
    Reply { head, body: body.to_vec(), hang: false }
}

/// The whole file.
pub(super) fn whole() -> Reply {
    reply("200 OK", "", &body())
}

/// The file from a byte on.
pub(super) fn rest(from: usize) -> Reply {
    let bytes = body();
    let range = format!("Content-Range: bytes {from}-{}/{}\r\n", bytes.len() - 1, bytes.len());
    reply("206 Partial Content", &range, &bytes[from..])
}

/// An answer whose body ends after this many bytes, short of what its head says.
pub(super) fn cut(mut reply: Reply, after: usize) -> Reply {
    reply.body.truncate(after);
    reply
}

/// A server on this machine that gives the answers in order, one a connection, and notes what it was asked.
/// It takes a CONNECT as a proxy would and then answers inside the tunnel.
pub(super) struct Server {
    pub(super) port: u16,
    asked: Arc<Mutex<Vec<String>>>,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    pub(super) fn start(replies: Vec<Reply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let over = Arc::new(AtomicBool::new(false));
        let (notes, stop) = (Arc::clone(&asked), Arc::clone(&over));
        let thread = std::thread::spawn(move || {
            for reply in replies {
                let Ok((stream, _)) = listener.accept() else { return };
                if stop.load(Ordering::SeqCst) {
                    return;
                }
                // A client that leaves early is part of some tests.
                let _ = answer(stream, &reply, &notes);
            }
        });
        Self { port, asked, over, thread: Some(thread) }
    }

    pub(super) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// What it was asked, without the part that is the same in all tests.
    pub(super) fn asked(&self) -> String {
        self.asked.lock().unwrap().join(" | ").replace("/o/r/resolve/main/f.gguf", "FILE")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
        // Wakes a server that still waits for a client.
        drop(TcpStream::connect(("127.0.0.1", self.port)));
        self.thread.take().map(JoinHandle::join);
    }
}

/// Method, target, and those headers that the tests are about.
fn read_request(reader: &mut impl BufRead) -> std::io::Result<String> {
    let mut request = String::new();
    for line in reader.lines() {
        let line = line?;
        if line.is_empty() {
            break;
        }
        if request.is_empty() {
            request.push_str(line.trim_end_matches(" HTTP/1.1"));
        } else if let Some((name, value)) = line.split_once(':') {
            if ["range", "proxy-authorization"].contains(&name.to_ascii_lowercase().as_str()) {
                request.push(' ');
                request.push_str(value.trim());
            }
        }
    }
    Ok(request)
}

fn answer(stream: TcpStream, reply: &Reply, notes: &Mutex<Vec<String>>) -> std::io::Result<()> {
    stream.set_read_timeout(Some(Duration::from_secs(20)))?;
    stream.set_write_timeout(Some(Duration::from_secs(20)))?;
    let mut writer = stream.try_clone()?;
    let mut reader = BufReader::new(stream);
    let mut request = read_request(&mut reader)?;
    if request.starts_with("CONNECT ") {
        notes.lock().unwrap().push(request);
        writer.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")?;
        request = read_request(&mut reader)?;
    }
    notes.lock().unwrap().push(request);
    writer.write_all(reply.head.as_bytes())?;
    writer.write_all(&reply.body)?;
    if reply.hang {
        reader.read_to_end(&mut Vec::new())?;
    }
    writer.shutdown(Shutdown::Both)
}
