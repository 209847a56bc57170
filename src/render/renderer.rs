//! The renderer: the only file that uses minijinja's environment.

use std::collections::BTreeSet;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Serde, ValueKind};
use minijinja::{AutoEscape, Environment, Error, ErrorKind, Output, State, UndefinedBehavior, Value};

use super::error::RenderError;
use super::filters;

/// Renders templates, strings and expressions. Deterministic.
#[derive(Debug)]
pub struct Renderer {
    environment: Environment<'static>,
}

impl Renderer {
    /// With these templates: pairs of a path below `templates/` and its text.
    ///
    /// # Errors
    /// Every template with a syntax error.
    pub fn new<'a>(
        templates: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, Vec<RenderError>> {
        let (renderer, errors) = Self::of_the_correct(templates);
        if errors.is_empty() { Ok(renderer) } else { Err(errors) }
    }

    /// As [`Renderer::new`], but with the templates without errors.
    pub fn of_the_correct<'a>(
        templates: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> (Self, Vec<RenderError>) {
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        environment.set_auto_escape_callback(|_| AutoEscape::None);
        environment.set_formatter(write_value);
        let mut syntax = SyntaxConfig::builder();
        syntax.keep_trailing_newline(true);
        let syntax =
            syntax.build().expect("because only delimiters can be refused, and these are the usual ones");
        environment.set_syntax(syntax);
        filters::register(&mut environment);
        let errors = templates
            .into_iter()
            .filter_map(|(name, text)| {
                let outcome = environment.add_template_owned(name.to_owned(), text.to_owned());
                outcome.err().map(|error| RenderError::in_template(name, &error, |_| Some(text.to_owned())))
            })
            .collect();
        (Self { environment }, errors)
    }

    /// Renders a template.
    ///
    /// # Errors
    /// [`RenderError::NoTemplate`], or [`RenderError::Template`] with the line.
    pub fn template(&self, name: &str, values: &Value) -> Result<String, RenderError> {
        let template = self
            .environment
            .get_template(name)
            .map_err(|_| RenderError::NoTemplate { template: name.to_owned() })?;
        template.render(values.clone()).map_err(|error| {
            let source =
                |name: &str| self.environment.get_template(name).ok().map(|found| found.source().to_owned());
            RenderError::in_template(name, &error, source)
        })
    }

    /// Renders a string of a state file.
    ///
    /// # Errors
    /// [`RenderError::Expression`].
    pub fn text(&self, text: &str, values: &Value) -> Result<String, RenderError> {
        self.environment.render_str(text, values.clone()).map_err(|error| RenderError::in_expression(&error))
    }

    /// Evaluates an expression; the value is never undefined.
    ///
    /// # Errors
    /// [`RenderError::Expression`] and [`RenderError::Undefined`].
    pub fn expression(&self, expression: &str, values: &Value) -> Result<Value, RenderError> {
        let value = self
            .environment
            .compile_expression(expression)
            .and_then(|compiled| compiled.eval(values.clone()))
            .map_err(|error| RenderError::in_expression(&error))?;
        if value.is_undefined() {
            return Err(RenderError::Undefined { expression: expression.to_owned() });
        }
        Ok(value)
    }

    /// Evaluates a condition. Only true and false are accepted: a typo that makes it a string or a list would otherwise
    /// be a condition that always holds.
    ///
    /// # Errors
    /// As [`Renderer::expression`], and [`RenderError::NotBoolean`].
    pub fn condition(&self, expression: &str, values: &Value) -> Result<bool, RenderError> {
        let value = self.expression(expression, values)?;
        match value.kind() {
            ValueKind::Bool => Ok(value.is_true()),
            found => {
                Err(RenderError::NotBoolean { expression: expression.to_owned(), found: type_name(found) })
            }
        }
    }

    /// Evaluates an expression to the items of a list.
    ///
    /// # Errors
    /// As [`Renderer::expression`], and [`RenderError::NotList`].
    pub fn list(&self, expression: &str, values: &Value) -> Result<Vec<Value>, RenderError> {
        let value = self.expression(expression, values)?;
        match (value.kind(), value.try_iter()) {
            (ValueKind::Seq | ValueKind::Iterable, Ok(items)) => Ok(items.collect()),
            (found, _) => {
                Err(RenderError::NotList { expression: expression.to_owned(), found: type_name(found) })
            }
        }
    }

    /// The values that an expression reads and does not define itself, each by the literal part of its path:
    /// `facts.os.family`.
    ///
    /// # Errors
    /// [`RenderError::Expression`] where it has a syntax error.
    pub fn reads_of_expression(&self, expression: &str) -> Result<BTreeSet<String>, RenderError> {
        let compiled = self
            .environment
            .compile_expression(expression)
            .map_err(|error| RenderError::in_expression(&error))?;
        Ok(self.without_globals(compiled.undeclared_variables(true)))
    }

    /// As [`Renderer::reads_of_expression`], of a string with `{{ }}`.
    ///
    /// # Errors
    /// [`RenderError::Expression`] where it has a syntax error.
    pub fn reads_of_text(&self, text: &str) -> Result<BTreeSet<String>, RenderError> {
        let compiled =
            self.environment.template_from_str(text).map_err(|error| RenderError::in_expression(&error))?;
        Ok(self.without_globals(compiled.undeclared_variables(true)))
    }

    /// As [`Renderer::reads_of_expression`], of a template; empty where it does not exist.
    pub fn reads_of_template(&self, name: &str) -> BTreeSet<String> {
        let template = self.environment.get_template(name);
        template.map_or_else(
            |_| BTreeSet::new(),
            |template| self.without_globals(template.undeclared_variables(true)),
        )
    }

    /// Whether the filter exists.
    pub fn has_filter(&self, name: &str) -> bool {
        self.evaluates(&format!("0|{name}"), ErrorKind::UnknownFilter)
    }

    /// Whether the test exists.
    pub fn has_test(&self, name: &str) -> bool {
        self.evaluates(&format!("0 is {name}"), ErrorKind::UnknownTest)
    }

    /// minijinja has no list of names: an unknown one has another error than one that only lacks arguments.
    fn evaluates(&self, expression: &str, unless: ErrorKind) -> bool {
        let outcome = self.environment.compile_expression(expression).and_then(|compiled| compiled.eval(()));
        outcome.err().is_none_or(|error| error.kind() != unless)
    }

    fn without_globals(&self, names: impl IntoIterator<Item = String>) -> BTreeSet<String> {
        let root = |name: &str| name.split('.').next().unwrap_or_default().to_owned();
        let globals: BTreeSet<&str> = self.environment.globals().map(|(name, _)| name).collect();
        names.into_iter().filter(|name| !globals.contains(root(name).as_str())).collect()
    }
}

/// A value for templates: a struct is a map of its fields, `None` is null.
pub fn values_of<T: serde::Serialize>(values: &T) -> Value {
    Value::from(Serde(values))
}

/// The values and one more, which shadows another of that name.
pub fn with_value(values: &Value, name: &str, value: Value) -> Value {
    minijinja::context! { ..Value::from_pairs([(name.to_owned(), value)]), ..values.clone() }
}

/// Writes a value in the form of configuration files. minijinja writes as Python does (`False`, `None`, `['a']`): here
/// booleans are lowercase, and null, lists and maps are refused.
fn write_value(out: &mut Output<'_>, state: &mut State<'_, '_>, value: &Value) -> Result<(), Error> {
    let refuse = |reason| Err(Error::new(ErrorKind::InvalidOperation, reason));
    match value.kind() {
        ValueKind::Bool => Ok(out.write_str(if value.is_true() { "true" } else { "false" })?),
        ValueKind::None => refuse("null cannot be written; use `default`, or `to_json`"),
        ValueKind::Seq | ValueKind::Iterable => refuse("a list cannot be written; use `join`, or `to_json`"),
        ValueKind::Map => refuse("a map cannot be written; use `to_json`"),
        _ => minijinja::escape_formatter(out, state, value),
    }
}

fn type_name(kind: ValueKind) -> String {
    match kind {
        ValueKind::None => "null".to_owned(),
        ValueKind::String => "a string".to_owned(),
        ValueKind::Map => "a map".to_owned(),
        ValueKind::Seq => "a list".to_owned(),
        other => format!("a {other}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values() -> Value {
        values_of(&serde_json::json!({
            "cluster": { "name": "blue", "dns": ["10.0.0.1", "10.0.0.2"], "proxy": null },
            "facts": { "container": false },
        }))
    }

    fn renderer() -> Renderer {
        Renderer::new([
            ("motd.j2", "welcome to\n{{ cluster.name }} & <co>\n"),
            ("resolv.yaml.j2", "{% for server in cluster.dns %}- {{ server }}\n{% endfor %}"),
            ("outer.j2", "one\n{% include \"inner.j2\" %}\n"),
            ("inner.j2", "two\nthree {{ cluster.nmae }}\n"),
        ])
        .unwrap()
    }

    #[test]
    fn a_template_keeps_its_last_newline_and_is_not_escaped() {
        assert_eq!(renderer().template("motd.j2", &values()).unwrap(), "welcome to\nblue & <co>\n");
        assert_eq!(renderer().template("resolv.yaml.j2", &values()).unwrap(), "- 10.0.0.1\n- 10.0.0.2\n");
    }

    #[test]
    fn an_undefined_value_is_an_error_with_the_line_of_the_template_that_it_is_in() {
        let error = renderer().template("outer.j2", &values()).unwrap_err();
        insta::assert_snapshot!(error, @r#"templates/inner.j2:2:10: `cluster.nmae` is undefined"#);
    }

    #[test]
    fn strings_and_filters_have_the_form_of_configuration_files() {
        for (text, expected) in [
            ("{{ cluster.name }}.example", "blue.example"),
            ("{{ cluster.dns | to_json }}", r#"["10.0.0.1","10.0.0.2"]"#),
            ("{{ '<&>' | to_json }}", r#""<&>""#),
            ("{{ 'blue' | b64encode }}", "Ymx1ZQ=="),
            ("{{ 'a.b/c:1@sha256:d' | without_tag }}", "a.b/c@sha256:d"),
            ("{{ facts.container }}", "false"),
            ("{{ cluster.proxy or 'none set' }}", "none set"),
            ("{{ cluster.mtu | default(1500) }}\n", "1500\n"),
        ] {
            assert_eq!(renderer().text(text, &values()).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn one_more_value_is_added_and_shadows_another_of_its_name() {
        let more = with_value(&with_value(&values(), "item", Value::from(3)), "facts", Value::from("none"));
        let text = renderer().text("{{ item }} {{ facts }} {{ cluster.name }}", &more).unwrap();
        assert_eq!(text, "3 none blue");
    }

    #[test]
    fn faults_name_their_cause() {
        let renderer = renderer();
        let mut messages = Vec::new();
        for text in [
            "{{ cluster.nmae }}",
            "{{ cluster.proxy }}",
            "{{ cluster.dns }}",
            "{{ cluster }}",
            "{{ cluster. }}",
            "{{ 1 | no_filter }}",
        ] {
            messages.push(format!("{text} -> {}", renderer.text(text, &values()).unwrap_err()));
        }
        for condition in ["facts.kontainer", "cluster.name", "cluster.dns", "facts.", "cluster.name.x.y"] {
            messages
                .push(format!("{condition} -> {}", renderer.condition(condition, &values()).unwrap_err()));
        }
        for list in ["cluster.name", "cluster", "3"] {
            messages.push(format!("{list} -> {}", renderer.list(list, &values()).unwrap_err()));
        }
        insta::assert_snapshot!(messages.join("\n"), @r#"
        {{ cluster.nmae }} -> `cluster.nmae` is undefined
        {{ cluster.proxy }} -> null cannot be written; use `default`, or `to_json`
        {{ cluster.dns }} -> a list cannot be written; use `join`, or `to_json`
        {{ cluster }} -> a map cannot be written; use `to_json`
        {{ cluster. }} -> syntax error: unexpected end of variable block, expected identifier or integer
        {{ 1 | no_filter }} -> filter no_filter is unknown
        facts.kontainer -> `facts.kontainer` is undefined
        cluster.name -> `cluster.name` is a string, not true or false
        cluster.dns -> `cluster.dns` is a list, not true or false
        facts. -> syntax error: unexpected end of input, expected identifier or integer
        cluster.name.x.y -> `cluster.name.x` is undefined
        cluster.name -> `cluster.name` is a string, not a list
        cluster -> `cluster` is a map, not a list
        3 -> `3` is a number, not a list
        "#);
    }

    #[test]
    fn every_template_with_a_syntax_error_is_reported() {
        let errors = Renderer::new([("a.j2", "x\n{% if %}"), ("b.j2", "ok"), ("c.j2", "{{")]).unwrap_err();
        let messages: Vec<_> = errors.iter().map(ToString::to_string).collect();
        insta::assert_snapshot!(messages.join("\n"), @r#"
        templates/a.j2:2:7: syntax error: unexpected end of block
        templates/c.j2:1:1: syntax error: unexpected end of input, expected expression
        "#);
    }

    #[test]
    fn reads_of_undefined_values_are_reported_by_path() {
        let renderer = renderer();
        let reads =
            renderer.reads_of_text("{% set x = cluster.a %}{{ x.y }}{{ range(3) }}{{ fact.b.c }}").unwrap();
        assert_eq!(reads.into_iter().collect::<Vec<_>>(), ["cluster.a", "fact.b.c"]);
        assert!(renderer.reads_of_template("resolv.yaml.j2").contains("cluster.dns"));
        assert!(renderer.reads_of_expression("item.x == 1").unwrap().contains("item.x"));
        assert_eq!(renderer.reads_of_template("none.j2"), BTreeSet::new());
    }

    #[test]
    fn filters_and_tests_are_known_by_name() {
        let renderer = renderer();
        assert!(["default", "to_json", "join", "replace"].iter().all(|name| renderer.has_filter(name)));
        assert!(["defined", "in", "none"].iter().all(|name| renderer.has_test(name)));
        assert!(!renderer.has_filter("to_yaml") && !renderer.has_test("match"));
    }
}
