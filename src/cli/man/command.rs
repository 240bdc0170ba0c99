//! soloist.1 and a page for each command, from the command line as it is declared.
//!
//! Must never: list a command or a flag that is hidden.

use clap::{Arg, Command};
use clap_mangen::Man;

use super::page::Page;
use super::words;

/// The section of commands.
const SECTION: &str = "1";

/// The commands that help lists.
pub(super) fn shown(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|one| !one.is_hide_set())
}

/// soloist.1: all that there is, on one page.
pub(super) fn main_page(command: &Command) -> Vec<u8> {
    let mut page = Page::new("soloist", SECTION);
    begin(&mut page, command);
    for text in words::DESCRIPTION {
        page.paragraph(text);
    }
    let everywhere = |arg: &Arg| arg.is_global_set() || is_help(arg);
    page.append(&options(command, everywhere, "OPTIONS"));
    page.section("COMMANDS");
    for one in shown(command) {
        page.subsection(&format!("soloist {}", usage(one)));
        page.paragraph(&about(one));
        page.append(&options(one, |arg| !everywhere(arg), ""));
        after(&mut page, one);
    }
    environment(&mut page, command);
    for (name, items) in words::SECTIONS {
        page.section(name);
        for (term, text) in *items {
            page.item(term, None, text);
        }
    }
    page.section("EXAMPLES");
    for (what, example) in words::EXAMPLES {
        page.item(example, None, what);
    }
    page.section("SEE ALSO");
    page.paragraph("jobs.toml(5), crontab(5), flock(1), systemd.exec(5)");
    page.finish()
}

/// soloist-COMMAND.1.
pub(super) fn page_of(command: &Command) -> Vec<u8> {
    let mut page = Page::new(&format!("soloist-{}", command.get_name()), SECTION);
    begin(&mut page, command);
    page.paragraph(&about(command));
    page.append(&options(command, |arg| !arg.is_global_set(), "OPTIONS"));
    let everywhere = "OPTIONS OF EVERY COMMAND";
    page.append(&options(command, |arg| arg.is_global_set(), everywhere));
    page.section("EXAMPLES");
    after(&mut page, command);
    page.section("SEE ALSO");
    page.paragraph("soloist(1), jobs.toml(5)");
    page.finish()
}

/// Up to the head of the description. Writing to memory can't fail.
fn begin(page: &mut Page, command: &Command) {
    let man = Man::new(command.clone());
    let mut text = Vec::new();
    let _ = man.render_name_section(&mut text);
    let _ = man.render_synopsis_section(&mut text);
    page.append(&text);
    page.section("DESCRIPTION");
}

/// The options that are wanted, under a head of their own or none; nothing where there are none.
fn options(command: &Command, wanted: impl Fn(&Arg) -> bool, head: &str) -> Vec<u8> {
    let mut alone = Command::new("soloist")
        .version(env!("CARGO_PKG_VERSION"))
        .disable_help_flag(true)
        .disable_version_flag(true);
    for arg in command.get_arguments().filter(|arg| wanted(arg)) {
        // Otherwise it would have a section of its own.
        alone = alone.arg(arg.clone().global(false).help_heading(None::<&str>));
    }
    alone.build();
    let mut text = Vec::new();
    let _ = Man::new(alone).render_options_section(&mut text);
    let text = String::from_utf8_lossy(&text);
    let own = match head {
        "" => String::new(),
        head if head.contains(' ') => format!(".SH \"{head}\"\n"),
        head => format!(".SH {head}\n"),
    };
    text.replacen(".SH OPTIONS\n", &own, 1).into_bytes()
}

/// What follows `soloist` on a command line, but for the options of every command.
fn usage(command: &Command) -> String {
    let flags = command.get_arguments().any(is_own_flag);
    let positionals = command.get_positionals().map(|arg| {
        let name = arg.get_value_names().map_or("", |names| names[0].as_str());
        let many = if arg
            .get_num_args()
            .is_some_and(|range| range.max_values() > 1)
        {
            "..."
        } else {
            ""
        };
        match arg.is_required_set() {
            true => format!(" {name}{many}"),
            false => format!(" [{name}{many}]"),
        }
    });
    let flags = if flags { " [OPTIONS]" } else { "" };
    format!(
        "{}{flags}{}",
        command.get_name(),
        positionals.collect::<String>()
    )
}

fn is_own_flag(arg: &Arg) -> bool {
    !arg.is_positional() && !arg.is_hide_set() && !arg.is_global_set() && !is_help(arg)
}

fn is_help(arg: &Arg) -> bool {
    ["help", "version"].contains(&arg.get_id().as_str())
}

fn about(command: &Command) -> String {
    let text = command.get_about().map(ToString::to_string);
    text.unwrap_or_default()
}

/// Examples, and what else help has below the options.
fn after(page: &mut Page, command: &Command) {
    let text = command.get_after_help().map(ToString::to_string);
    for part in text.unwrap_or_default().split("\n\n") {
        page.lines(part);
    }
}

/// The variables of flags, from their declaration, and then those that no flag stands for.
fn environment(page: &mut Page, command: &Command) {
    page.section("ENVIRONMENT");
    let commands = std::iter::once(command).chain(shown(command));
    let args = commands.flat_map(Command::get_arguments);
    let mut seen = Vec::new();
    for arg in args.filter(|arg| !arg.is_hide_set()) {
        let Some(variable) = arg.get_env().map(|name| name.to_string_lossy()) else {
            continue;
        };
        if seen.contains(&variable) {
            continue;
        }
        let flag = arg.get_long().unwrap_or_default();
        page.item(&variable, None, &format!("Stands for --{flag}."));
        seen.push(variable);
    }
    for (variable, text) in words::VARIABLES {
        page.item(variable, None, text);
    }
}
