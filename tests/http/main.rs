//! Health and the API as clients meet them: a real replica on a real store, asked over sockets.

mod access;
mod client;
mod document;
mod hostile;
mod life;
mod same;
mod secrets;
mod settings;
mod site;
