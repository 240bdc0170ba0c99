//! Any bytes as what a daemon and a keeper tell each other. What it has to hold to stands in `soloist::fuzzing`.

#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|input: &[u8]| soloist::fuzzing::run("wire", input));

#[cfg(not(fuzzing))]
fn main() -> std::process::ExitCode {
    eprintln!("built without `--cfg fuzzing`: run `make fuzz`");
    std::process::ExitCode::from(2)
}
