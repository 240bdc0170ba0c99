//! The Lua scripts, put together once: each is its own shebang, what all share
//! (`lua/common.lua`), and itself.

use std::sync::LazyLock;

use redis::{Cmd, Script as Hashed};

const COMMON: &str = include_str!("../../../lua/common.lua");

/// What the server is asked to do in one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Register,
    Claim,
    Renew,
    Release,
    Observe,
    Output,
}

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
        Operation::Register,
        Operation::Claim,
        Operation::Renew,
        Operation::Release,
        Operation::Observe,
        Operation::Output,
    ];

    fn source(self) -> &'static str {
        match self {
            Operation::Register => include_str!("../../../lua/register.lua"),
            Operation::Claim => include_str!("../../../lua/claim.lua"),
            Operation::Renew => include_str!("../../../lua/renew.lua"),
            Operation::Release => include_str!("../../../lua/release.lua"),
            Operation::Observe => include_str!("../../../lua/observe.lua"),
            Operation::Output => include_str!("../../../lua/output.lua"),
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
            LazyLock::new(|| Operation::ALL.map(|operation| Script::new(operation.source())));
        &SCRIPTS[self as usize]
    }
}

struct Script {
    code: String,
    digest: String,
}

impl Script {
    fn new(source: &str) -> Self {
        // Redis reads the flags of a script in its first line only.
        let (shebang, body) = source.split_once('\n').unwrap_or((source, ""));
        assert!(
            shebang.starts_with("#!lua"),
            "a script starts with its shebang"
        );
        let code = format!("{shebang}\n{COMMON}{body}");
        let digest = Hashed::new(&code).get_hash().to_owned();
        Self { code, digest }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_has_its_own_script_behind_its_shebang() {
        for operation in Operation::ALL {
            let name = format!("-- {operation:?}.lua:").to_lowercase();
            let code = &operation.script().code;
            assert!(code.starts_with("#!lua"));
            assert!(code.contains(&name), "{name}");
        }
    }

    #[test]
    fn lua_and_rust_keep_the_same_number_of_outputs() {
        let line = format!("local OUTPUTS_KEPT = {}\n", crate::store::OUTPUTS_KEPT);
        assert!(COMMON.contains(&line));
    }
}
