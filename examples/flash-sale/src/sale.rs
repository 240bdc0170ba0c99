//! The sale in Redis: what has to be decided ten thousand times a second, each in one script.
//!
//! ```text
//!  {flash-sale:NAME}:sale    hash    state, loaded, stock, unsold, token
//!  {flash-sale:NAME}:buyers  hash    user to order
//!  {flash-sale:NAME}:orders  stream  user; the id of the entry is the order's
//! ```
//!
//! The names share a hash tag, so that a cluster keeps them together and a script may use all.
//!
//! Must never: look at one of them and change it in a second call.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, Cmd, FromRedisValue, RedisResult, Script};
use soloist::scheduler::lease::FencingToken;

use crate::error::SaleError;

/// How long an answer may take when many buy at once; longer than a worker's wait for orders.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(20);

/// How long a server may take to be reached.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(5);

/// A sale, by a connection. Clones share it.
#[derive(Clone, Debug)]
pub struct Sale {
    connection: MultiplexedConnection,
    names: Arc<Names>,
}

#[derive(Debug)]
struct Names {
    place: String,
    sale: String,
    buyers: String,
    orders: String,
    buy: Script,
    open: Script,
    close: Script,
}

/// What became of a purchase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bought {
    /// It is the user's, by this order.
    Sold(String),
    /// The user has one already, by this order: it was asked before.
    Has(String),
    /// There are no more.
    SoldOut,
    /// The sale is not open yet, or closed.
    NotOpen,
}

/// What became of an opening.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Opened {
    Now,
    Before { state: String, loaded: u64 },
}

/// What Redis knows of a sale.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// `open` or `closed`; none where Redis doesn't know it.
    pub state: Option<String>,
    /// Put on sale.
    pub loaded: u64,
    /// Still to be had.
    pub stock: u64,
    /// Taken out when it was closed.
    pub unsold: u64,
    /// Users who have an order.
    pub buyers: u64,
    /// Orders in the stream.
    pub orders: u64,
}

impl Sale {
    /// Connects to the Redis that has it, or is to have it.
    ///
    /// # Errors
    /// When that can't be reached.
    pub async fn connect(url: &str, name: &str) -> Result<Self, SaleError> {
        let client = Client::open(url).map_err(SaleError::Url)?;
        let place = client.get_connection_info().addr().to_string();
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECTION_TIMEOUT))
            .set_response_timeout(Some(RESPONSE_TIMEOUT));
        let connection = client.get_multiplexed_async_connection_with_config(&config);
        let connection = connection.await.map_err(|source| SaleError::Redis {
            place: place.clone(),
            source,
        })?;
        let key = |part| format!("{{flash-sale:{name}}}:{part}");
        let names = Names {
            place,
            sale: key("sale"),
            buyers: key("buyers"),
            orders: key("orders"),
            buy: Script::new(include_str!("buy.lua")),
            open: Script::new(include_str!("open.lua")),
            close: Script::new(include_str!("close.lua")),
        };
        Ok(Self {
            connection,
            names: Arc::new(names),
        })
    }

    /// Buys one for a user. To ask again, after an answer that never came, is safe.
    ///
    /// # Errors
    /// When Redis can't be asked.
    pub async fn buy(&self, user: &str) -> Result<Bought, SaleError> {
        let names = &*self.names;
        let mut call = names.buy.key(&names.sale);
        call.key(&names.buyers).key(&names.orders).arg(user);
        let reply: RedisResult<Vec<String>> = call.invoke_async(&mut self.connection()).await;
        match texts(&self.heard(reply)?).as_slice() {
            ["sold", order] => Ok(Bought::Sold((*order).to_owned())),
            ["has", order] => Ok(Bought::Has((*order).to_owned())),
            ["sold out"] => Ok(Bought::SoldOut),
            ["not open"] => Ok(Bought::NotOpen),
            other => Err(unknown("buy.lua", other)),
        }
    }

    pub(crate) async fn open(&self, stock: u64, token: FencingToken) -> Result<Opened, SaleError> {
        let names = &*self.names;
        let mut call = names.open.key(&names.sale);
        call.arg(stock).arg(token.get());
        let reply: RedisResult<Vec<String>> = call.invoke_async(&mut self.connection()).await;
        match texts(&self.heard(reply)?).as_slice() {
            ["opened"] => Ok(Opened::Now),
            reply @ ["was", state, loaded] => Ok(Opened::Before {
                state: (*state).to_owned(),
                loaded: number(loaded).ok_or_else(|| unknown("open.lua", reply))?,
            }),
            other => Err(stale_or_unknown("open.lua", token, other)),
        }
    }

    /// Answers with what was not sold.
    pub(crate) async fn close(&self, token: FencingToken) -> Result<u64, SaleError> {
        let names = &*self.names;
        let mut call = names.close.key(&names.sale);
        call.arg(token.get());
        let reply: RedisResult<Vec<String>> = call.invoke_async(&mut self.connection()).await;
        match texts(&self.heard(reply)?).as_slice() {
            reply @ ["closed", unsold] => number(unsold).ok_or_else(|| unknown("close.lua", reply)),
            ["unknown"] => Err(SaleError::Forgotten),
            other => Err(stale_or_unknown("close.lua", token, other)),
        }
    }

    /// How it stands.
    ///
    /// # Errors
    /// When Redis can't be asked.
    pub async fn counters(&self) -> Result<Counters, SaleError> {
        let names = &*self.names;
        let mut all = redis::pipe();
        all.atomic();
        all.cmd("HGETALL").arg(&names.sale);
        all.cmd("HLEN").arg(&names.buyers);
        all.cmd("XLEN").arg(&names.orders);
        let reply: RedisResult<(HashMap<String, String>, u64, u64)> =
            all.query_async(&mut self.connection()).await;
        let (sale, buyers, orders) = self.heard(reply)?;
        let counter = |field| sale.get(field).and_then(|text| number(text)).unwrap_or(0);
        Ok(Counters {
            state: sale.get("state").cloned(),
            loaded: counter("loaded"),
            stock: counter("stock"),
            unsold: counter("unsold"),
            buyers,
            orders,
        })
    }

    /// The stream of orders.
    pub(crate) fn stream(&self) -> &str {
        &self.names.orders
    }

    pub(crate) async fn ask<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, SaleError> {
        let reply = command.query_async(&mut self.connection()).await;
        self.heard(reply)
    }

    fn connection(&self) -> MultiplexedConnection {
        self.connection.clone()
    }

    fn heard<T>(&self, reply: RedisResult<T>) -> Result<T, SaleError> {
        reply.map_err(|source| SaleError::Redis {
            place: self.names.place.clone(),
            source,
        })
    }
}

fn texts(reply: &[String]) -> Vec<&str> {
    reply.iter().map(String::as_str).collect()
}

fn number(text: &str) -> Option<u64> {
    text.parse().ok()
}

fn stale_or_unknown(script: &'static str, token: FencingToken, reply: &[&str]) -> SaleError {
    match reply {
        ["stale", newest] if number(newest).is_some() => SaleError::Stale {
            own: token.get(),
            newest: number(newest).unwrap_or_default(),
        },
        other => unknown(script, other),
    }
}

fn unknown(script: &'static str, reply: &[&str]) -> SaleError {
    SaleError::Reply {
        script,
        reply: reply.iter().map(|text| (*text).to_owned()).collect(),
    }
}
