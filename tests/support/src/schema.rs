//! A JSON Schema over tables in TOML, judged by a validator that is not ours.
//!
//! Must never: let a fault of a value's form pass because TOML and JSON differ.

use serde_json::{Value, json};
use toml::de::{DeTable, DeValue};

/// A schema that is one.
pub struct Schema(jsonschema::Validator);

impl Schema {
    /// Takes a schema of draft 2020-12; panics at one that isn't.
    #[must_use]
    pub fn new(schema: &Value) -> Self {
        let checked = jsonschema::draft202012::meta::validate(schema);
        checked.unwrap_or_else(|error| panic!("no schema: {error}"));
        let validator = jsonschema::draft202012::new(schema);
        Self(validator.unwrap_or_else(|error| panic!("no schema: {error}")))
    }

    /// What the schema has against a table, each with its place.
    #[must_use]
    pub fn faults(&self, table: &str) -> Vec<String> {
        let table = DeTable::parse(table).unwrap_or_else(|error| panic!("{error}\n{table}"));
        let table = object(table.get_ref());
        let faults = self.0.iter_errors(&table);
        faults
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect()
    }
}

fn object(table: &DeTable<'_>) -> Value {
    let entries = table.iter();
    entries
        .map(|(key, value)| (key.get_ref().to_string(), json_of(value.get_ref())))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

fn json_of(value: &DeValue<'_>) -> Value {
    match value {
        DeValue::String(text) => json!(text),
        DeValue::Integer(number) => {
            let read = i64::from_str_radix(number.as_str(), number.radix());
            read.map_or_else(|_| json!(f64::INFINITY), |number| json!(number))
        }
        DeValue::Float(number) => json!(number.as_str().parse::<f64>().unwrap_or(f64::NAN)),
        DeValue::Boolean(boolean) => json!(boolean),
        // Editors hand a schema TOML's own dates as texts.
        DeValue::Datetime(date) => json!(date.to_string()),
        DeValue::Array(array) => array.iter().map(|item| json_of(item.get_ref())).collect(),
        DeValue::Table(table) => object(table),
    }
}
