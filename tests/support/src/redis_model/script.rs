//! Scripts, run by the Lua that Redis has in it
//! (<https://redis.io/docs/latest/develop/programmability/lua-api/>).

use std::collections::{BTreeMap, HashMap};
use std::mem;
use std::sync::{Arc, Mutex, PoisonError};

use mlua::{Function, Lua, MultiValue, Table, Value};

use super::reply::Reply;
use super::{Data, ModelServer, name};

/// The scripts that were loaded. Servers of one test share them.
pub struct Scripts {
    lua: Lua,
    known: Mutex<HashMap<String, Function>>,
    /// By their texts, each of which is loaded with every connection.
    digests: Mutex<BTreeMap<Vec<u8>, String>>,
    running: Arc<Mutex<Running>>,
}

/// The server that runs a script at present.
struct Running {
    server: ModelServer,
    now_us: i64,
}

impl Default for Scripts {
    /// None yet.
    ///
    /// # Panics
    ///
    /// When Lua can't be set up.
    fn default() -> Self {
        let lua = Lua::new();
        let running = Arc::new(Mutex::new(Running {
            server: ModelServer {
                data: Data::default(),
                run_id: String::new(),
            },
            now_us: 0,
        }));
        let api = lua.create_table().expect("a table");
        for (name, raises) in [("call", true), ("pcall", false)] {
            let running = Arc::clone(&running);
            let function = lua.create_function(move |lua, words: MultiValue| {
                let mut running = running.lock().unwrap_or_else(PoisonError::into_inner);
                call(lua, &words, &mut running, raises)
            });
            api.set(name, function.expect("a function"))
                .expect("it is new");
        }
        lua.globals().set("redis", api).expect("it is new");
        Self {
            lua,
            known: Mutex::default(),
            digests: Mutex::default(),
            running,
        }
    }
}

impl Scripts {
    pub(super) fn load(&self, code: &[u8]) -> Result<String, String> {
        let mut digests = self.digests.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(digest) = digests.get(code) {
            return Ok(digest.clone());
        }
        // The first line is for Redis.
        let body = match code.starts_with(b"#!") {
            true => &code[code.iter().position(|byte| *byte == b'\n').unwrap_or(0)..],
            false => code,
        };
        let function = self.lua.load(body).into_function();
        let function = function.map_err(|error| format!("ERR {error}"))?;
        let digest = sha1_smol::Sha1::from(code).digest().to_string();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(digest.clone(), function);
        digests.insert(code.to_vec(), digest.clone());
        Ok(digest)
    }

    /// Runs one: after its name come the number of keys, the keys, and the arguments.
    pub(super) fn run(
        &self,
        digest: &str,
        words: &[Vec<u8>],
        server: &mut ModelServer,
        now_us: i64,
    ) -> Reply {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(function) = known.get(digest) else {
            return Reply::Error("NOSCRIPT No matching script. Please use EVAL.".to_owned());
        };
        self.put(server, now_us);
        let result = self.evaluate(function, words);
        self.put(server, now_us);
        match result {
            Ok(value) => told(&value),
            Err(error) => Reply::Error(format!(
                "ERR {}",
                error.to_string().replace(['\r', '\n'], " ")
            )),
        }
    }

    /// Has scripts work on this server, or takes it out again.
    fn put(&self, server: &mut ModelServer, now_us: i64) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        mem::swap(&mut running.server, server);
        running.now_us = now_us;
    }

    fn evaluate(&self, function: &Function, words: &[Vec<u8>]) -> mlua::Result<Value> {
        let (count, words) = words.split_first().expect("the number of keys");
        let count: usize = String::from_utf8_lossy(count).parse().expect("a number");
        let (keys, arguments) = words.split_at(count);
        for (name, words) in [("KEYS", keys), ("ARGV", arguments)] {
            let table = self.lua.create_table()?;
            for word in words {
                table.raw_push(self.lua.create_string(word)?)?;
            }
            self.lua.globals().raw_set(name, table)?;
        }
        function.call(())
    }
}

fn call(lua: &Lua, words: &MultiValue, running: &mut Running, raises: bool) -> mlua::Result<Value> {
    let words: Vec<Vec<u8>> = words.iter().map(word).collect::<mlua::Result<_>>()?;
    let now_us = running.now_us;
    match running.server.command(&words, now_us) {
        Reply::Error(error) if raises => {
            let command = name(&words);
            Err(mlua::Error::runtime(format!("{error} ({command})")))
        }
        reply => shown(lua, reply),
    }
}

fn word(value: &Value) -> mlua::Result<Vec<u8>> {
    match value {
        Value::String(text) => Ok(text.as_bytes().to_vec()),
        Value::Integer(number) => Ok(number.to_string().into_bytes()),
        Value::Number(number) => Ok(number.to_string().into_bytes()),
        other => Err(mlua::Error::runtime(format!(
            "ERR Lua redis lib command arguments must be strings or integers, not {}",
            other.type_name()
        ))),
    }
}

fn shown(lua: &Lua, reply: Reply) -> mlua::Result<Value> {
    let table = |field: &str, text: String| {
        let table = lua.create_table()?;
        table.raw_set(field, text)?;
        Ok(Value::Table(table))
    };
    match reply {
        Reply::Nil => Ok(Value::Boolean(false)),
        Reply::Integer(number) => Ok(Value::Number(number as f64)),
        Reply::Bulk(bytes) => Ok(Value::String(lua.create_string(bytes)?)),
        Reply::Status(word) => table("ok", word),
        Reply::Error(error) => table("err", error),
        Reply::Array(parts) => {
            let list = lua.create_table()?;
            for (part, at) in parts.into_iter().zip(1..) {
                list.raw_set(at, shown(lua, part)?)?;
            }
            Ok(Value::Table(list))
        }
    }
}

fn told(value: &Value) -> Reply {
    match value {
        Value::String(text) => Reply::Bulk(text.as_bytes().to_vec()),
        Value::Integer(number) => Reply::Integer(*number),
        Value::Number(number) => Reply::Integer(*number as i64),
        Value::Boolean(true) => Reply::Integer(1),
        Value::Table(table) => listed(table),
        _ => Reply::Nil,
    }
}

/// A list ends at its first nil.
fn listed(table: &Table) -> Reply {
    let field = |name: &str| table.raw_get::<Option<String>>(name).ok().flatten();
    if let Some(error) = field("err") {
        return Reply::Error(error);
    }
    if let Some(word) = field("ok") {
        return Reply::Status(word);
    }
    let parts = (1..).map_while(|at| match table.raw_get::<Value>(at) {
        Ok(Value::Nil) | Err(_) => None,
        Ok(part) => Some(told(&part)),
    });
    Reply::Array(parts.collect())
}
