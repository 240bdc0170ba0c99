//! What is in `deploy/`: the chart, rendered by Helm's own engine and held against the schemas of
//! the Kubernetes API; the manifests made of it; the image and the Compose file.
//!
//! Must never reach a cluster, a registry or the net: `scripts/install-test-tools` brings the tools.

mod alerts;
mod chart;
mod image;
mod manifests;
mod pods;
mod tables;
mod values;
