//! The Lua scripts, put together once: each is its own shebang, what all share
//! (`lua/common.lua`), and itself.
//!
//! Must never: put anything into a script but its own text; what varies is an argument.

use std::sync::LazyLock;

use redis::{Cmd, Script as Hashed};

const COMMON: &str = include_str!("../../../lua/common.lua");

/// What the server is asked to do in one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Read,
    Write,
    /// The same, and a server without memory does it too.
    WriteWithoutRoom,
    Observe,
    Output,
    Adopt,
}

/// Tells the server to run a script though it is out of memory.
const ALLOW_OOM: &str = " flags=allow-oom";

/// How a script is named to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Call {
    /// By its digest: the server has to know it.
    ByDigest,
    /// By its whole text.
    ByText,
}

impl Operation {
    pub(super) const ALL: [Operation; 6] = [
        Operation::Read,
        Operation::Write,
        Operation::WriteWithoutRoom,
        Operation::Observe,
        Operation::Output,
        Operation::Adopt,
    ];

    fn source(self) -> &'static str {
        match self {
            Operation::Read => include_str!("../../../lua/read.lua"),
            Operation::Write | Operation::WriteWithoutRoom => {
                include_str!("../../../lua/write.lua")
            }
            Operation::Observe => include_str!("../../../lua/observe.lua"),
            Operation::Output => include_str!("../../../lua/output.lua"),
            Operation::Adopt => include_str!("../../../lua/adopt.lua"),
        }
    }

    fn added_flags(self) -> &'static str {
        match self {
            Operation::WriteWithoutRoom => ALLOW_OOM,
            _ => "",
        }
    }

    /// The command that makes the server know the script.
    pub(super) fn load(self) -> Cmd {
        let mut command = redis::cmd("SCRIPT");
        command.arg("LOAD").arg(&self.script().code);
        command
    }

    /// The command that runs the script; the arguments are for the caller to add.
    pub(super) fn evaluate(self, call: Call, keys: &[&str]) -> Cmd {
        let script = self.script();
        let (name, which) = match call {
            Call::ByDigest => ("EVALSHA", &script.digest),
            Call::ByText => ("EVAL", &script.code),
        };
        let mut command = redis::cmd(name);
        command.arg(which).arg(keys.len()).arg(keys);
        command
    }

    fn script(self) -> &'static Script {
        static SCRIPTS: LazyLock<[Script; Operation::ALL.len()]> =
            LazyLock::new(|| Operation::ALL.map(Script::of));
        &SCRIPTS[self as usize]
    }
}

struct Script {
    code: String,
    digest: String,
}

impl Script {
    fn of(operation: Operation) -> Self {
        let source = operation.source();
        // Redis reads the flags of a script in its first line only.
        let (shebang, body) = source.split_once('\n').unwrap_or((source, ""));
        assert!(
            shebang.starts_with("#!lua"),
            "a script starts with its shebang"
        );
        let flags = operation.added_flags();
        let code = format!("{shebang}{flags}\n{COMMON}{body}");
        let digest = Hashed::new(&code).get_hash().to_owned();
        Self { code, digest }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_operation_has_its_own_script_behind_its_shebang() {
        let mut digests = HashSet::new();
        for operation in Operation::ALL {
            let script = operation.script();
            assert!(script.code.starts_with("#!lua"));
            assert!(digests.insert(&script.digest), "{operation:?}");
        }
    }

    #[test]
    fn a_server_without_memory_does_all_but_what_takes_room() {
        for operation in Operation::ALL {
            let (shebang, _) = operation.script().code.split_once('\n').unwrap();
            let expected = match operation {
                Operation::Write => "#!lua",
                Operation::Output => "#!lua flags=no-writes",
                _ => "#!lua flags=allow-oom",
            };
            assert_eq!(shebang, expected, "{operation:?}");
        }
    }

    #[test]
    fn lua_and_rust_keep_the_same_number_of_outputs() {
        let line = format!("local OUTPUTS_KEPT = {}\n", crate::store::OUTPUTS_KEPT);
        assert!(Operation::Write.script().code.contains(&line));
    }
}
