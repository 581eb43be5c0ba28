//! What is printed with `--json` fits its schema, and has no key that the schema does not know.

use jsonschema::Validator;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

/// Checks the output of a call with these arguments.
pub fn check(arguments: &[&str], value: &Value) {
    let name = name(arguments);
    let errors: Vec<String> = validator(name)
        .iter_errors(value)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    let shown: Vec<&str> = errors.iter().take(5).map(|error| &error[..error.len().min(400)]).collect();
    assert!(errors.is_empty(), "{arguments:?} does not fit docs/schema/{name}.json: {shown:#?}");
}

/// Reads the output of a call with these arguments, and checks it.
pub fn read(arguments: &[&str], stdout: &[u8]) -> Value {
    let value = serde_json::from_slice(stdout).unwrap_or_else(|error| {
        panic!("{error}: {arguments:?} printed {:?}", String::from_utf8_lossy(stdout))
    });
    check(arguments, &value);
    value
}

/// The schema of a call.
fn name(arguments: &[&str]) -> &'static str {
    let records = arguments.iter().filter(|word| word.ends_with(".tare")).count();
    let has = |option: &str| arguments.contains(&option);
    let of_tools = arguments.iter().filter(|word| word.ends_with(".txt") || word.ends_with(".json")).count();
    let output = tare_model::schema::OUTPUTS.iter().map(|output| output.name);
    let commands = output.chain(["show"]);
    let command = arguments.iter().find(|word| commands.clone().any(|name| name == **word));
    match *command.unwrap_or_else(|| panic!("{arguments:?}")) {
        "show" if of_tools > 0 => "tool",
        "show" => "run",
        "compare" if of_tools > 1 => "compare-tools",
        "why" if records < 2 => "run",
        "compare" if records > 1 => "compare-records",
        "ceiling" if has("--list") => "ceilings",
        "calibrate" if has("--zoo") => "zoo",
        "calibrate" if has("--list") => "injections",
        other => tare_model::schema::find(other).unwrap_or_else(|| panic!("{other}")).name,
    }
}

fn validator(name: &str) -> Validator {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema").join(name).with_extension("json");
    let mut schema: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let composed = composed(&schema);
    close(&mut schema);
    if let Some(Value::Object(parts)) = schema.get_mut("$defs") {
        parts.iter_mut().filter(|(name, _)| !composed.contains(*name)).for_each(|(_, part)| close(part));
    }
    jsonschema::validator_for(&schema).unwrap()
}

/// Parts whose keys stand beside others in one object: the whole is closed, not they.
fn composed(schema: &Value) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut open = vec![schema];
    while let Some(node) = open.pop() {
        if node["properties"].is_object() {
            let branches =
                ["oneOf", "anyOf", "allOf"].iter().filter_map(|list| node[*list].as_array()).flatten();
            let refers = |part: &Value| Some(part["$ref"].as_str()?.rsplit('/').next()?.to_owned());
            found.extend(branches.chain([node]).filter_map(refers));
        }
        match node {
            Value::Object(keys) => open.extend(keys.values()),
            Value::Array(items) => open.extend(items),
            _ => {}
        }
    }
    found
}

/// An object may have the keys of its schema alone.
fn close(schema: &mut Value) {
    if schema["type"] == "object" && schema["properties"].is_object() {
        schema["unevaluatedProperties"] = false.into();
    }
}
