//! When unit files are reloaded, by the shells of this machine and a systemctl that is told what systemd knows.

use crate::engine::shells::{run, shells};
use crate::transport::Program;

/// What systemctl was called with after `command`, apart from questions. systemd has loaded these units, and
/// has these enabled.
fn acted(shell: &str, command: &str, loaded: &[&str], enabled: &[&str]) -> String {
    let script = format!(
        r#"loaded='{}' enabled='{}'
        systemctl() {{
            for last in "$@"; do :; done
            case $1 in
            list-units) for unit in $loaded; do case $unit in $last) echo "$unit loaded active running" ;; esac; done ;;
            is-enabled) case " $enabled " in *" $last "*) echo enabled ;; *) echo disabled; return 1 ;; esac ;;
            *) echo "$*" ;;
            esac
        }}
        {}
        {command}"#,
        loaded.join(" "),
        enabled.join(" "),
        include_str!("reload.sh"),
    );
    let output = run(shell, &Program { script, payload: Vec::new() });
    assert_eq!(output.status, 0, "{shell}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn unit_files_are_reloaded_for_a_unit_that_has_failed_and_had_no_file() {
    let systemctl = "systemctl() { case $* in *--state=*failed*) echo a.service not-found failed ;; daemon-*) echo $1 ;; esac; }";
    for shell in shells() {
        let script = format!("{systemctl}\n{}\nreload_unit a.service", include_str!("reload.sh"));
        let output = run(shell, &Program { script, payload: Vec::new() });
        assert_eq!(String::from_utf8_lossy(&output.stdout), "daemon-reload\n", "{shell}");
    }
}

#[test]
fn unit_files_are_reloaded_for_a_unit_that_systemd_knows() {
    for shell in shells() {
        assert_eq!(acted(shell, "reload_unit a.service", &["b.service"], &[]), "", "{shell}");
        assert_eq!(acted(shell, "reload_unit a.service", &["a.service"], &[]), "daemon-reload\n", "{shell}");
        let instance = acted(shell, "reload_unit a@.service", &["a@1.service"], &[]);
        assert_eq!(instance, "daemon-reload\n", "{shell}: an instance runs by the file of its template");
        assert_eq!(acted(shell, "reload_unit a@.service", &["ab@1.service"], &[]), "", "{shell}");
    }
}

#[test]
fn only_units_that_are_not_enabled_are_enabled_and_no_unit_file_is_reloaded_for_it() {
    for shell in shells() {
        let acted =
            |enabled: &[&str]| acted(shell, "enable_units a.service b.service", &["a.service"], enabled);
        assert_eq!(acted(&["a.service"]), "enable --no-reload -- b.service\n", "{shell}");
        assert_eq!(acted(&[]), "enable --no-reload -- a.service b.service\n", "{shell}");
        assert_eq!(acted(&["a.service", "b.service"]), "", "{shell}");
    }
}
