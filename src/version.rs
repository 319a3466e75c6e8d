//! What `callme --version` says: package, commit, llama.cpp bindings, CPU.
//!
//! **Invariant:** nothing is found out here; `build.rs` has done so, and what it could not is "unknown".

/// The text after the program's name in `callme --version`, without an end of line.
///
/// `system_info` is what llama.cpp says at run time of the CPU features that it was really built with; it
/// goes into the last line. The line of the target has what rustc was told.
///
/// ```
/// let text = call_me_maybe::version::long(None);
/// assert!(text.starts_with(env!("CARGO_PKG_VERSION")));
/// ```
#[must_use]
pub fn long(system_info: Option<&str>) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let commit = option_env!("CALLME_COMMIT").unwrap_or("unknown");
    let bindings = if cfg!(feature = "engine") {
        option_env!("CALLME_BINDINGS").unwrap_or("unknown")
    } else {
        "not built in"
    };
    let target = option_env!("CALLME_TARGET").unwrap_or("unknown");
    let cpu = option_env!("CALLME_CPU").unwrap_or("unknown");
    let features = option_env!("CALLME_CPU_FEATURES").unwrap_or_default();
    let mut text = format!(
        "{version} (commit {commit})\nllama-cpp-2: {bindings}\ntarget: {target}, CPU {cpu}: {features}"
    );
    if let Some(info) = system_info {
        text.push_str("\nllama.cpp: ");
        text.push_str(info.trim());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_there() {
        let text = long(Some("CPU : AVX2 = 1 | \n"));
        let names: Vec<_> = text.lines().skip(1).filter_map(|line| line.split_once(": ")).collect();
        assert_eq!(
            names.iter().map(|(name, _)| *name).collect::<Vec<_>>(),
            ["llama-cpp-2", "target", "llama.cpp"]
        );
        assert_eq!(names[2].1, "CPU : AVX2 = 1 |");
        assert!(names[1].1.contains(std::env::consts::ARCH), "{text}");
        assert_eq!(long(None).lines().count(), 3);
    }
}
