//! The request of one attempt: everything filled in that only the attempt knows, and the
//! headers that tell the server which attempt this is.

use crate::guardian::http::HttpCall;
use crate::scheduler::Attempt;
use crate::scheduler::request::HttpRequest;
use crate::scheduler::variable::Variable;

/// The same for all attempts of an occurrence, so that a server can tell a repetition
/// (draft-ietf-httpapi-idempotency-key-header).
const IDEMPOTENCY_KEY: &str = "Idempotency-Key";

/// Fills in `request` for an attempt on the replica of that name.
pub(super) fn http_call(attempt: &Attempt, replica: &str, request: &HttpRequest) -> HttpCall {
    let value = |variable: Variable| variable.of(attempt, replica);
    let key = format!("{}/{}", attempt.job.name, attempt.scheduled_at);
    let mut headers = vec![(IDEMPOTENCY_KEY.to_owned(), key)];
    let contract = Variable::ALL.into_iter();
    headers.extend(contract.map(|variable| (variable.header().to_owned(), value(variable))));
    let own = request.headers.iter();
    headers.extend(own.map(|(name, template)| (name.clone(), template.fill(value))));
    let expected = request.expect_status.0.iter();
    HttpCall {
        method: request.method.clone(),
        url: request.url.fill(value),
        path_is_secret: request.url.has_secrets(),
        headers,
        body: request.body.as_ref().map(|body| body.fill(value)),
        expect_status: expected
            .map(|range| (*range.start(), *range.end()))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use uuid::Uuid;

    use super::*;
    use crate::scheduler::Guard;
    use crate::scheduler::job::{Job, JobName, Program};
    use crate::scheduler::lease::{FencingToken, RunId};
    use crate::scheduler::request::{ExpectStatus, Piece, Template};
    use crate::scheduler::schedule::{DstFold, DstGap, Schedule};
    use crate::scheduler::time::{BootTime, Timestamp};

    fn attempt(request: HttpRequest) -> Attempt {
        let zone = jiff::tz::TimeZone::UTC;
        let (gap, fold) = (DstGap::default(), DstFold::default());
        let schedule = Schedule::parse("@manual", "", zone, gap, fold).unwrap();
        let name = JobName::new("close-expired-orders").unwrap();
        let job = Job::new(name, schedule, Program::Http(Box::new(request)));
        Attempt {
            job: Arc::new(job),
            scheduled_at: Timestamp::from_second(1_795_212_000),
            shard: 0,
            shards: 1,
            run_id: RunId::new(Uuid::from_u128(7)),
            number: 3,
            token: FencingToken::new(1_795_212_000_000_001),
            guard: Guard {
                stop_at: BootTime::default(),
                kill_at: BootTime::default(),
            },
        }
    }

    fn call(url: Vec<Piece>) -> HttpCall {
        let body = vec![
            Piece::Text("{\"at\": \"".into()),
            Piece::Variable(Variable::ScheduledAt),
            Piece::Text("\", \"job\": \"${SOLOIST_JOB}\"}".into()),
        ];
        let key = vec![
            Piece::Secret("${SOLOIST_JOB}-".into()),
            Piece::Variable(Variable::FencingToken),
        ];
        let request = HttpRequest {
            url: Template::new(url),
            method: "POST".into(),
            headers: vec![("X-Key".into(), Template::new(key))],
            body: Some(Template::new(body)),
            expect_status: ExpectStatus(vec![200..=299, 404..=404]),
        };
        http_call(&attempt(request.clone()), "replica-1", &request)
    }

    #[test]
    fn a_request_tells_which_attempt_it_is() {
        let call = call(vec![Piece::Text("http://h/".into())]);
        let headers: Vec<_> = call.headers.iter().map(|(n, v)| (&**n, &**v)).collect();
        assert_eq!(
            headers,
            [
                (
                    "Idempotency-Key",
                    "close-expired-orders/2026-11-20T22:00:00Z"
                ),
                ("Soloist-Job", "close-expired-orders"),
                ("Soloist-Scheduled-At", "2026-11-20T22:00:00Z"),
                ("Soloist-Attempt", "3"),
                ("Soloist-Fencing-Token", "1795212000000001"),
                ("Soloist-Run-Id", "00000000-0000-0000-0000-000000000007"),
                ("Soloist-Replica", "replica-1"),
                ("Soloist-Shard-Index", "0"),
                ("Soloist-Shard-Total", "1"),
                ("X-Key", "${SOLOIST_JOB}-1795212000000001"),
            ]
        );
    }

    #[test]
    fn url_and_body_are_filled_in_and_the_rest_is_kept() {
        let call = call(vec![
            Piece::Text("https://h/${SOLOIST_JOB}/".into()),
            Piece::Variable(Variable::Job),
            Piece::Text("?attempt=".into()),
            Piece::Variable(Variable::Attempt),
        ]);
        let url = "https://h/${SOLOIST_JOB}/close-expired-orders?attempt=3";
        assert_eq!(call.url, url);
        assert!(!call.path_is_secret);
        let body = "{\"at\": \"2026-11-20T22:00:00Z\", \"job\": \"${SOLOIST_JOB}\"}";
        assert_eq!(call.body.as_deref(), Some(body));
        assert_eq!(call.method, "POST");
        assert_eq!(call.expect_status, [(200, 299), (404, 404)]);
    }

    #[test]
    fn a_url_that_came_from_outside_the_table_has_a_secret_path() {
        assert!(call(vec![Piece::Secret("http://h/hook".into())]).path_is_secret);
    }
}
