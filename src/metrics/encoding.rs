//! Series that are written down when somebody asks for them, rather than kept.
//!
//! Must never: leave a family without HELP, or a unit undeclared.

use std::fmt;

use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Unit;

/// A label and its value.
pub(super) type Label<'v> = (&'static str, &'v str);

/// A family of series.
pub(super) struct Family<'e>(MetricEncoder<'e>);

/// What a family is called, and what it is about.
pub(super) struct Named {
    pub(super) name: &'static str,
    pub(super) help: &'static str,
    pub(super) unit: Option<Unit>,
}

impl Named {
    /// A number without a unit.
    pub(super) const fn new(name: &'static str, help: &'static str) -> Self {
        let unit = None;
        Self { name, help, unit }
    }

    /// A time in seconds.
    pub(super) const fn seconds(name: &'static str, help: &'static str) -> Self {
        let unit = Some(Unit::Seconds);
        Self { name, help, unit }
    }

    /// A size in bytes.
    pub(super) const fn bytes(name: &'static str, help: &'static str) -> Self {
        let unit = Some(Unit::Bytes);
        Self { name, help, unit }
    }

    fn begin<'e>(
        &'e self,
        encoder: &'e mut DescriptorEncoder<'_>,
        kind: MetricType,
    ) -> Result<Family<'e>, fmt::Error> {
        let Self { name, help, unit } = self;
        let family = encoder.encode_descriptor(name, help, unit.as_ref(), kind)?;
        Ok(Family(family))
    }

    pub(super) fn gauge<'e>(
        &'e self,
        encoder: &'e mut DescriptorEncoder<'_>,
    ) -> Result<Family<'e>, fmt::Error> {
        self.begin(encoder, MetricType::Gauge)
    }

    pub(super) fn counter<'e>(
        &'e self,
        encoder: &'e mut DescriptorEncoder<'_>,
    ) -> Result<Family<'e>, fmt::Error> {
        self.begin(encoder, MetricType::Counter)
    }

    pub(super) fn histogram<'e>(
        &'e self,
        encoder: &'e mut DescriptorEncoder<'_>,
    ) -> Result<Family<'e>, fmt::Error> {
        self.begin(encoder, MetricType::Histogram)
    }

    /// One gauge without labels.
    pub(super) fn only(&self, encoder: &mut DescriptorEncoder<'_>, value: f64) -> fmt::Result {
        self.gauge(encoder)?.0.encode_gauge(&value)
    }

    /// One counter without labels.
    pub(super) fn only_count(
        &self,
        encoder: &mut DescriptorEncoder<'_>,
        value: f64,
    ) -> fmt::Result {
        let mut family = self.counter(encoder)?;
        family.0.encode_counter::<NoLabelSet, _, u64>(&value, None)
    }
}

impl Family<'_> {
    /// A gauge of these labels.
    pub(super) fn set<const N: usize>(
        &mut self,
        labels: [Label<'_>; N],
        value: f64,
    ) -> fmt::Result {
        self.0.encode_family(&labels)?.encode_gauge(&value)
    }

    /// A counter of these labels.
    pub(super) fn count<const N: usize>(
        &mut self,
        labels: [Label<'_>; N],
        value: u64,
    ) -> fmt::Result {
        let mut one = self.0.encode_family(&labels)?;
        one.encode_counter::<NoLabelSet, _, u64>(&value, None)
    }

    /// A metric of these labels that knows how to write itself.
    pub(super) fn metric<const N: usize>(
        &mut self,
        labels: [Label<'_>; N],
        metric: &impl prometheus_client::encoding::EncodeMetric,
    ) -> fmt::Result {
        metric.encode(self.0.encode_family(&labels)?)
    }
}

/// Yes or no, as a number.
pub(super) fn truth(is: bool) -> f64 {
    match is {
        true => 1.0,
        false => 0.0,
    }
}
