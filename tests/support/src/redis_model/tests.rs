//! It answers as a real server does: the same commands, drawn by a seed, are put to both.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use super::{Data, ModelServer, Reply, Scripts};
use crate::redis::RedisServer;

const SEEDS: u64 = 40;
const COMMANDS: usize = 250;

/// What the scripts do with answers: lists of what there is not, numbers, errors, long lists.
const SCRIPTS: [&str; 6] = [
    "local t = redis.call('HKEYS', KEYS[1]) table.sort(t) return t",
    "local t, p = redis.call('HGETALL', KEYS[1]), {} for i = 1, #t, 2 do p[#p + 1] = t[i] .. '=' .. t[i + 1] end table.sort(p) return { #t, p }",
    "local h = redis.call('HMGET', KEYS[1], 'f1', 'f2', 'f3') return { h[1] == false, h, tonumber(h[2] or 0), redis.call('ZCARD', KEYS[2]) }",
    "#!lua flags=allow-oom\nlocal id = redis.pcall('XADD', KEYS[3], 'MAXLEN', '=', '3', ARGV[1] .. '-*', 'f', ARGV[2]) if type(id) == 'table' then return { 'refused', type(id.err) } end return { 'added', id }",
    "redis.call('HSET', KEYS[1], unpack(ARGV)) return { 1.9, -1.9, true, string.format('%.0f', 2^53), { ok = 'fine' } }",
    "return redis.call('HGET', KEYS[1], 'f1') or redis.call('ZADD', KEYS[2], 'no number', 'm')",
];

/// A number below `sides` (Steele and others, "Fast splittable pseudorandom number generators",
/// 2014).
struct Dice(u64);

impl Dice {
    fn throw(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % sides
    }

    fn pick(&mut self, words: &[&str]) -> String {
        words[usize::try_from(self.throw(words.len() as u64)).expect("few")].to_owned()
    }

    fn key(&mut self, kind: &str) -> String {
        format!("{kind}{}", self.throw(2))
    }

    fn on_stream(&mut self, stream: &str) -> Vec<String> {
        let id = |dice: &mut Self| dice.pick(&["-", "+", "5", "7-0", "(7-0", "(6", "8-1", "9"]);
        let score = |dice: &mut Self| dice.pick(&["0", "1", "2", "-3", "1795000000123"]);
        match self.throw(5) {
            0 | 1 => {
                let id = self.pick(&["5-*", "6-*", "7-0", "7-*", "8-1", "9-*"]);
                vec![
                    "XADD".into(),
                    stream.to_owned(),
                    id,
                    "f".into(),
                    score(self),
                ]
            }
            2 => vec![
                "XTRIM".into(),
                stream.to_owned(),
                "MINID".into(),
                "=".into(),
                self.pick(&["5", "7", "8"]),
            ],
            3 => vec![
                "XRANGE".into(),
                stream.to_owned(),
                id(self),
                id(self),
                "COUNT".into(),
                "2".into(),
            ],
            _ => vec!["XREVRANGE".into(), stream.to_owned(), id(self), id(self)],
        }
    }

    fn command(&mut self) -> Vec<String> {
        let field = |dice: &mut Self| format!("f{}", dice.throw(5));
        let score = |dice: &mut Self| dice.pick(&["0", "1", "2", "-3", "1795000000123"]);
        let bound =
            |dice: &mut Self| dice.pick(&["-inf", "+inf", "1", "(1", "(0", "2", "1795000000123"]);

        let (hash, set, stream) = (self.key("hash"), self.key("set"), self.key("stream"));
        let words: Vec<String> = match self.throw(19) {
            0 | 1 => vec![
                "HSET".into(),
                hash,
                field(self),
                score(self),
                field(self),
                score(self),
            ],
            2 => vec!["HGET".into(), hash, field(self)],
            3 => vec!["HMGET".into(), hash, field(self), field(self)],
            4 => vec!["HDEL".into(), hash, field(self), field(self)],
            5 | 6 => vec![
                "ZADD".into(),
                set,
                score(self),
                field(self),
                score(self),
                field(self),
            ],
            7 => vec!["ZREM".into(), set, field(self), field(self)],
            8 => vec![
                "ZRANGEBYSCORE".into(),
                set,
                bound(self),
                bound(self),
                "WITHSCORES".into(),
            ],
            9 => {
                let limits = [
                    "LIMIT".into(),
                    self.pick(&["0", "1"]),
                    self.pick(&["1", "2", "9"]),
                ];
                [
                    vec!["ZRANGEBYSCORE".into(), set, bound(self), bound(self)],
                    limits.into(),
                ]
                .concat()
            }
            10 => vec!["ZCARD".into(), set],
            11..16 => self.on_stream(&stream),
            16 => vec![self.pick(&["UNLINK", "EXISTS"]), hash, set, stream],
            17 => vec!["RENAME".into(), hash, self.key("hash")],
            _ => {
                let script = self.pick(&SCRIPTS);
                let arguments = [self.throw(10).to_string(), score(self)];
                let words = vec!["EVAL".into(), script, "3".into(), hash, set, stream];
                [words, arguments.into()].concat()
            }
        };
        words
    }
}

/// What a real server answers, as it comes.
fn ask(server: &mut TcpStream, words: &[Vec<u8>]) -> Vec<u8> {
    const END: &[u8] = b"+PONG\r\n";
    let command = Reply::Array(words.iter().cloned().map(Reply::Bulk).collect());
    let mut bytes = Vec::new();
    command.encode(&mut bytes);
    bytes.extend_from_slice(b"*1\r\n$4\r\nPING\r\n");
    server.write_all(&bytes).expect("it listens");
    let mut answer = Vec::new();
    while !answer.ends_with(END) {
        let mut buffer = [0; 4096];
        let length = server.read(&mut buffer).expect("it answers");
        assert!(length > 0, "it hung up");
        answer.extend_from_slice(&buffer[..length]);
    }
    answer.truncate(answer.len() - END.len());
    answer
}

/// Of an error only its code is the same.
fn without_words(answer: &[u8]) -> &[u8] {
    match answer.starts_with(b"-") {
        true => answer.split(|byte| *byte == b' ').next().unwrap_or(answer),
        false => answer,
    }
}

#[test]
fn a_server_in_memory_answers_as_a_real_one_does() {
    let real = RedisServer::start();
    let mut real = TcpStream::connect(("127.0.0.1", real.port())).expect("it is there");
    let scripts = Scripts::default();
    let mut refused = 0;
    for seed in 0..SEEDS {
        let mut dice = Dice(seed);
        ask(&mut real, &[b"FLUSHALL".to_vec()]);
        let mut model = ModelServer {
            data: Data::default(),
            run_id: String::new(),
        };
        for turn in 0..COMMANDS {
            let words = dice.command();
            let bytes: Vec<Vec<u8>> = words.iter().map(|word| word.clone().into_bytes()).collect();
            let mut answer = Vec::new();
            model.call(&bytes, 0, &scripts).encode(&mut answer);
            let expected = ask(&mut real, &bytes);
            refused += usize::from(expected.starts_with(b"-"));
            let shown = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            assert_eq!(
                shown(without_words(&answer)),
                shown(without_words(&expected)),
                "seed {seed}, turn {turn}: {words:?}"
            );
        }
    }
    println!("{SEEDS} times {COMMANDS} commands, of which {refused} were refused");
}
