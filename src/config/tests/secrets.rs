//! What may be a secret is in no message and in no line that is shown with one.

use super::read;

#[test]
fn nothing_that_is_shown_has_a_secret_in_it() {
    let secret = "s3cr3t";
    let sources = [
        "[scheduler]\nstore = \"redis://u:s3cr3t@h:port\"",
        "[scheduler]\nstore = \"rdis://u:s3cr3t@h\"",
        "[scheduler]\nstore = \"postgres://h/db?password=s3cr3t\"",
        "[scheduler]\nstore = \"redis://u:s3cr3t@h",
        "[scheduler]\nstore = \"redis:/u:s3cr3t@h\"",
        "[scheduler]\nstore = 'redis:u:s3cr3t@h'",
        "[scheduler]\nstore = \"\"\"redis//u:s3cr3t@h\"\"\"",
        "[scheduler]\nstore = \"u:s3cr3t@h:6379\"",
        "[scheduler]\nstore = \"redis://s3cr3t@h\"",
        "[scheduler]\nstore = \"redis://:s3cr3t\"",
        "[scheduler]\nstore = \"redis://${NONE:-s3cr3t}@h\"",
        "scheduler.store = \"redis://s3cr3t@h\"",
        "[jobs.x]\nenv = { A = \"s3cr3t\", B = 5 }",
        "[jobs.x]\nenv = { A = \"${NONE:-s3cr3t}${NONE}s3cr3t\" }",
        "[jobs.x]\nenv = { A = \"s3cr3t",
        "[jobs.x.env]\nA = \"s3cr3t",
        "[jobs.x]\nenv.A = 's3cr3t",
        "[jobs.x]\nenv = { A = \"\"\"\ns3cr3t\"\"\", \"B=\" = \"s3cr3t\" }",
        "[jobs.x]\nenv = { A = \"s3cr3t\", A = \"s3cr3t\" }",
        "[jobs.x.env]\nA = \"s3cr3t\"\nA = \"s3cr3t\"",
        "[jobs.x]\nenv = { A = [\"s3cr3t\"], B = { C = \"s3cr3t\" } }",
        "[jobs.x]\nenv = [\"s3cr3t\"]",
        "[jobs.x]\ncommand = \"curl http://u:s3cr3t@h\"",
        "[jobs.x]\nhttp = \"https://h/?k=s3cr3t\"",
        "[jobs.x]\nhttp = { url = \"https://s3cr3t@h:port/?k=s3cr3t\" }",
        "[jobs.x]\nhttp = { url = \"ftp://u:s3cr3t@h/ ?s3cr3t\" }",
        "[jobs.x]\nhttp = { url = \"http://h?s3cr3t&${NONE}&s3cr3t\" }",
        "[jobs.x]\nhttp = { headers = { \"A B\" = \"s3cr3t\", Soloist-Job = \"s3cr3t${\" } }",
        "[jobs.x]\nhttp = { headers = { A = \"s3cr3t\", a = \"s3cr3t\", B = \"s3cr3t\\n\" } }",
        "[jobs.x]\nhttp = { headers = [\"s3cr3t\"], body = { a = \"s3cr3t\" } }",
        "[jobs.x]\nhttp = { headers = \"s3cr3t\", url = [\"s3cr3t\"], token = \"s3cr3t\" }",
        "[jobs.x]\nhttp = { url = \"http://h?s3cr3t\", url = \"http://h?s3cr3t\" }",
        "[jobs.x.http]\nurl = \"http://h?s3cr3t\"\nurl = \"http://h?s3cr3t\"",
        "[jobs.x.http]\nmethod = \"HEAD\"\nbody = \"\"\"\ns3cr3t\n\"\"\"",
        "[jobs.x.http]\nurl = \"https://h?s3cr3t",
        "[jobs.x]\nhttp = { url = \"https://h?s3cr3t\"",
        "[jobs.x.http.headers]\nA = \"s3cr3t",
    ];
    for source in sources {
        let error = read(source).expect_err(source);
        for shown in [
            error.to_string(),
            format!("{error:?}"),
            format!("{:?}", error.0),
        ] {
            assert!(!shown.contains(secret), "{source}\n{shown}");
        }
    }
}

#[test]
fn what_is_hidden_of_a_store_that_is_none_leaves_the_rest_to_see() {
    for (store, shown) in [
        ("redis:/u:s3cr3t@h", "redis:/********@h"),
        ("redis://${NONE}@h/x", "redis://${NONE}@h/x"),
        ("rdis://h:6379", "rdis://h:6379"),
    ] {
        let source = format!("[scheduler]\nstore = \"{store}\"");
        let error = read(&source).expect_err(store).to_string();
        assert!(error.contains(&format!("store = \"{shown}\"")), "{error}");
    }
}
