//! Whose definition of the job decides, where tables differ.
//!
//! Must never: call a table outdated that the ledger has never heard of.

use super::View;
use super::account::Remark;

/// The ledger has another definition of the job in force than this table's, which it knows.
pub(super) fn other(view: &View<'_>) -> Option<Remark> {
    let own = &view.entry()?.definition;
    let force = view.state()?.force.as_ref()?;
    let is_outdated = own.digest != force.digest && force.known.find(&own.digest).is_some();
    is_outdated.then(|| {
        let tables = &view.snapshot.tables;
        let replicas = view.snapshot.replicas.iter();
        let has_it = replicas.filter(|one| {
            let table = tables.get(&one.info.digest);
            let theirs = table.and_then(|table| table.get(view.job));
            one.is_alive(view.now) && theirs == Some(&force.digest)
        });
        Remark::OtherDefinition {
            table: own.to_string(),
            in_force: force.definition().to_string(),
            replicas: has_it.map(|one| one.replica.name.clone()).collect(),
        }
    })
}
