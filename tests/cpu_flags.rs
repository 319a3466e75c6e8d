//! Which CPU flags `make` chooses, for processors other than this one.

use std::fs;
use std::process::Command;

/// `tools/cpu-flags.sh --print` on a machine whose `/proc/cpuinfo` lists `features`.
#[track_caller]
fn check(machine: &str, features: &str, expected: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let cpuinfo = folder.path().join("cpuinfo");
    let key = if machine == "aarch64" { "Features" } else { "flags" };
    fs::write(&cpuinfo, format!("processor\t: 0\n{key}\t\t: {features}\n\n{key}\t\t: other\n"))
        .unwrap();
    let mut command = Command::new("tools/cpu-flags.sh");
    command.arg("--print").current_dir(env!("CARGO_MANIFEST_DIR"));
    // What `make test` itself has set must not leak in.
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if ["RUSTFLAGS", "GGML_", "CMAKE_", "CALLME_"].iter().any(|start| text.starts_with(start)) {
            command.env_remove(&name);
        }
    }
    command.env("CALLME_CPUINFO", &cpuinfo);
    command.env("CALLME_MACHINE", machine).env("CALLME_SYSTEM", "Linux");
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.lines().collect::<Vec<_>>(), expected);
    assert!(!text.contains("native") && !text.contains("amx"));
}

#[test]
fn each_x86_processor_gets_what_it_has_and_never_amx() {
    let ice_lake = ["name icelake-server", "RUSTFLAGS=-C target-cpu=icelake-server"];
    check("x86_64", "avx2 avx512f avx512_vnni avx512_vbmi2 avx512_bitalg gfni vaes", &ice_lake);
    let sapphire_rapids =
        "avx2 avx_vnni avx512f gfni vaes avx512_vbmi2 avx512_vnni avx512_bitalg amx_tile amx_int8";
    check("x86_64", sapphire_rapids, &ice_lake);
    check(
        "x86_64",
        "avx2 avx512f avx512_vnni",
        &["name avx512vnni", "RUSTFLAGS=-C target-cpu=x86-64-v4 -C target-feature=+avx512vnni"],
    );
    check(
        "x86_64",
        "avx2 avx_vnni gfni vaes",
        &["name avxvnni", "RUSTFLAGS=-C target-cpu=x86-64-v3 -C target-feature=+avxvnni"],
    );
    // AVX-512 without VNNI is not worth its own build.
    check("x86_64", "avx avx2 avx512f", &["name x86-64-v3", "RUSTFLAGS=-C target-cpu=x86-64-v3"]);
    check(
        "x86_64",
        "avx sse4_2",
        &[
            "name x86-64-v2",
            "GGML_AVX2=OFF",
            "GGML_AVX=OFF",
            "GGML_BMI2=OFF",
            "GGML_F16C=OFF",
            "GGML_FMA=OFF",
            "RUSTFLAGS=-C target-cpu=x86-64-v2",
        ],
    );
}

#[test]
fn aarch64_gets_the_dot_product_that_the_build_script_leaves_out() {
    check("aarch64", "fp asimd", &["name aarch64"]);
    check(
        "aarch64",
        "fp asimd asimdhp asimddp",
        &[
            "name aarch64-dotprod-fp16",
            "CMAKE_PROJECT_INCLUDE=tools/arm-arch.cmake",
            "GGML_CPU_ARM_ARCH=armv8.2-a+dotprod+fp16",
        ],
    );
    check(
        "aarch64",
        "fp asimd asimddp i8mm sve sme",
        &[
            "name aarch64-dotprod-i8mm",
            "CMAKE_PROJECT_INCLUDE=tools/arm-arch.cmake",
            "GGML_CPU_ARM_ARCH=armv8.2-a+dotprod+i8mm",
        ],
    );
    check("riscv64", "rv64imafdc", &["name default"]);
}
