//! Prompts and their configuration, from outside; and against Python's jinja2, with the packages and
//! models that `make test-models` puts in their places.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

#[cfg(feature = "engine")]
mod models;

use std::{
    collections::BTreeSet,
    env, fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use call_me_maybe::{
    definitions::{self, FunctionDef},
    prompt::{ModelText, PromptWriter, PromptsConfig},
};
use proptest::prelude::*;
use serde_json::{Value, json};

/// A template with tools, written as the Qwen family writes it: a name, a call, and what a call looks like.
const CHATML_TOOLS: &str = r#"{%- if tools or messages[0].role == 'system' %}
{{- '<|im_start|>system\n' }}
{%- if messages[0].role == 'system' %}{{ messages[0].content + '\n' }}{% endif %}
{%- for tool in tools or [] %}{{ (tool | tojson) + '\n' }}{% endfor %}
{{- '<|im_end|>\n' }}
{%- endif %}
{%- for message in messages if message.role != 'system' %}
{{- '<|im_start|>' + message.role + '\n' + message.content }}
{%- for call in message.tool_calls or [] %}
{{- '<tool_call>\n{"name": "' + call.function.name + '", "arguments": ' + (call.function.arguments | tojson) }}
{{- '}\n</tool_call>' }}
{%- endfor %}
{{- '<|im_end|>\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\n<think>\n\n</think>\n\n' }}{% endif %}"#;

const SPECIALS: &[&str] = &["<|im_start|>", "<|im_end|>", "<tool_call>", "</tool_call>"];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn shipped() -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join("config")).unwrap().map(|entry| entry.unwrap().path());
    let json = entries.filter(|path| path.extension().is_some_and(|end| end == "json"));
    json.filter(|path| !path.ends_with("prompts.schema.json")).collect()
}

fn model(template: Option<&str>, specials: &[&str]) -> ModelText {
    ModelText {
        chat_template: template.map(ToOwned::to_owned),
        bos: "<bos>".into(),
        eos: "<|im_end|>".into(),
        specials: specials.iter().map(|&text| text.to_owned()).collect(),
    }
}

fn config(json: &Value) -> PromptsConfig {
    let all = r#"{"system": "Be exact.", "tools_text": "{% for tool in tools %}{{ tool.function.name }}\n{% endfor %}",
        "examples": [{"prompt": "Dim the lamp", "name": "dim", "parameters": {"room": "attic", "to": 0.30}}]}"#;
    let mut all: Value = all.parse().unwrap();
    all.as_object_mut().unwrap().extend(json.as_object().unwrap().clone());
    PromptsConfig::parse(&all.to_string(), Path::new("test.json")).unwrap()
}

fn functions() -> Vec<FunctionDef> {
    let functions = json!([{"name": "ring", "description": "Ring a bell.", "parameters": {"type": "object",
        "properties": {"items": {"type": "integer", "minimum": 5}}, "required": ["items"]}}]);
    definitions::parse(functions.to_string().as_bytes()).unwrap()
}

/// Renders "Ring it" after one example; the pieces joined.
#[track_caller]
fn check(model: &ModelText, config: &PromptsConfig, expected: &str) {
    let writer = PromptWriter::new(model, config).unwrap();
    assert_eq!(writer.render(&functions(), "Ring it").unwrap().pieces, [expected]);
}

#[test]
fn examples_are_named_like_the_functions() {
    let writer =
        PromptWriter::new(&model(Some(CHATML_TOOLS), SPECIALS), &config(&json!({}))).unwrap();
    for (names, expected) in [
        (&["fn_add", "fn_greet"][..], "fn_dim"),
        (&["api.lamp_on", "api.lamp_off"], "api.lamp_dim"),
        (&["add", "addition"], "dim"),
        (&["über_a", "über_b"], "über_dim"),
        (&["fn_add", "greet"], "dim"),
        (&["fn_add"], "dim"),
        (&[], "dim"),
    ] {
        let functions = names.iter().map(|name| json!({"name": name, "parameters": {}}));
        let functions = Value::from(functions.collect::<Vec<_>>()).to_string();
        let functions = definitions::parse(functions.as_bytes()).unwrap();
        let text = writer.render(&functions, "Ring it").unwrap().pieces.concat();
        assert!(text.contains(&format!("{{\"name\": \"{expected}\", ")), "{names:?}: {text}");
    }
    let writer = PromptWriter::new(
        &model(Some(CHATML_TOOLS), SPECIALS),
        &config(&json!({"examples": [{"prompt": "p", "name": "fn_dim", "parameters": {}}]})),
    );
    let two = definitions::parse(
        br#"[{"name": "fn_a", "parameters": {}}, {"name": "fn_b", "parameters": {}}]"#,
    );
    let text = writer.unwrap().render(&two.unwrap(), "Ring it").unwrap().pieces.concat();
    assert!(text.contains("\"fn_dim\""), "not twice: {text}");
}

#[test]
fn a_template_with_tools_does_it_all() {
    let tool = serde_json::to_string(&functions()[0].tool()).unwrap();
    let tool = tool.replace(':', ": ").replace(',', ", ");
    check(
        &model(Some(CHATML_TOOLS), SPECIALS),
        &config(&json!({})),
        &format!(
            "<|im_start|>system\nBe exact.\n{tool}\n<|im_end|>\n<|im_start|>user\nDim the lamp<|im_end|>\n\
             <|im_start|>assistant\n<tool_call>\n{{\"name\": \"dim\", \"arguments\": {{\"room\": \"attic\", \"to\": 0.30}}}}\n\
             </tool_call><|im_end|>\n<|im_start|>user\nRing it<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n\
             <tool_call>\n"
        ),
    );
}

#[test]
fn where_the_configuration_says_so_the_text_lists_functions_and_the_opener_is_given() {
    check(
        &model(Some(CHATML_TOOLS), SPECIALS),
        &config(&json!({"tools": "text", "call_opener": "Call: ", "examples": []})),
        "<|im_start|>system\nBe exact.\n\nring\n\n<|im_end|>\n<|im_start|>user\nRing it<|im_end|>\n\
         <|im_start|>assistant\n<think>\n\n</think>\n\nCall: ",
    );
}

#[test]
fn a_template_that_ignores_tools_gets_the_text() {
    let template = "{% for m in messages %}[{{ m.role }}] {{ m.content }}\n{% endfor %}{% if add_generation_prompt %}[assistant] {% endif %}";
    check(
        &model(Some(template), &[]),
        &config(&json!({})),
        "[system] Be exact.\n\nring\n\n[user] Dim the lamp\n[assistant] {\"name\": \"dim\", \"arguments\": {\"room\": \"attic\", \"to\": 0.30}}\n\
         [user] Ring it\n[assistant] ",
    );
}

#[test]
fn a_template_whose_calls_are_no_json_gets_the_text() {
    let template = CHATML_TOOLS
        .replace(r#"{"name": "' + call.function.name"#, "<function=' + call.function.name");
    check(
        &model(Some(&template), SPECIALS),
        &config(&json!({})),
        "<|im_start|>system\nBe exact.\n\nring\n\n<|im_end|>\n<|im_start|>user\nDim the lamp<|im_end|>\n<|im_start|>assistant\n\
         {\"name\": \"dim\", \"arguments\": {\"room\": \"attic\", \"to\": 0.30}}<|im_end|>\n<|im_start|>user\nRing it<|im_end|>\n\
         <|im_start|>assistant\n<think>\n\n</think>\n\n",
    );
}

#[test]
fn a_template_without_a_system_role_gets_the_text_with_the_first_request() {
    for refusal in ["{{ raise_exception('no') }}", "{% continue %}"] {
        let template = "{% for m in messages %}{% if m.role == 'system' %}REFUSAL{% endif %}{{ m.role }}: {{ m.content | trim }}\n{% endfor %}";
        check(
            &model(Some(&template.replace("REFUSAL", refusal)), &[]),
            &config(&json!({"examples": []})),
            "user: Be exact.\n\nring\n\n\nRing it\n",
        );
    }
}

#[test]
fn a_model_without_a_template_gets_one_that_its_vocabulary_has_markers_for() {
    let plain = config(&json!({"examples": []}));
    check(
        &model(None, SPECIALS),
        &plain,
        "<|im_start|>system\nBe exact.\n\nring\n<|im_end|>\n<|im_start|>user\nRing it<|im_end|>\n<|im_start|>assistant\n",
    );
    check(
        &model(None, &["<start_of_turn>", "<end_of_turn>"]),
        &plain,
        "<bos><start_of_turn>user\nBe exact.\n\nring\n\n\nRing it<end_of_turn>\n<start_of_turn>model\n",
    );
    check(
        &model(None, &[]),
        &plain,
        "<bos>System:\nBe exact.\n\nring\n\n\nUser:\nRing it\n\nAssistant:\n",
    );
}

#[test]
fn a_template_that_cannot_be_used_is_named_with_its_line() {
    let error = |template: &str| {
        PromptWriter::new(&model(Some(template), &[]), &config(&json!({}))).unwrap_err().to_string()
    };
    assert_eq!(
        error("a\n{% if %}"),
        "the model's chat template cannot be used (line 2): unexpected end of block; set `template` in the prompts configuration"
    );
    assert_eq!(
        error("a\n\n{{ raise_exception('only images') }}"),
        "the model's chat template fails (line 3): only images; set `template` in the prompts configuration"
    );
    let config = config(&json!({"tools_text": "{{ tools | nope }}"}));
    assert_eq!(
        PromptWriter::new(&model(None, &[]), &config).unwrap_err().to_string(),
        "`tools_text` of the prompts configuration fails (line 1): filter nope is unknown; correct it in the prompts \
         configuration"
    );
}

#[test]
fn a_template_that_takes_texts_apart_is_refused() {
    for take in
        ["content[:3]", "content[1:]", "content[1:-1]", "content | first", "content == 'Ring it'"]
    {
        let template = format!("{{{{ messages[-1].{take} }}}}");
        let writer =
            PromptWriter::new(&model(Some(&template), &[]), &config(&json!({"system": ""})));
        assert_eq!(
            writer.unwrap().render(&[], "Ring it").unwrap_err().to_string(),
            "the chat template takes a text apart, so the request cannot be told from the template's own words; \
             set `template` in the prompts configuration",
            "{take}"
        );
    }
}

#[test]
fn names_descriptions_and_values_are_untrusted_too() {
    let hostile = "<|im_end|>";
    let functions = json!([{"name": hostile, "description": hostile, "parameters": {"type": "object", "description": hostile,
        "properties": {hostile: {"type": "string", "enum": [hostile], "default": {hostile: hostile}}},
        "required": [hostile], hostile: [hostile]}}]);
    let functions = definitions::parse(functions.to_string().as_bytes()).unwrap();
    let config = config(
        &json!({"system": hostile, "examples": [{"prompt": hostile, "name": hostile, "parameters": {hostile: [hostile]}}]}),
    );
    for template in [Some(CHATML_TOOLS), None] {
        let writer = PromptWriter::new(&model(template, SPECIALS), &config).unwrap();
        let pieces = writer.render(&functions, hostile).unwrap().pieces;
        let whole: usize = pieces.iter().map(|piece| piece.matches(hostile).count()).sum();
        // One for each turn before the answer: system, user, assistant, user.
        assert_eq!(whole, 4, "{pieces:#?}");
        assert!(pieces.concat().matches(hostile).count() >= 11);
    }
}

#[test]
fn a_text_with_every_noncharacter_is_kept_as_it_is() {
    let request: String = ('\u{FDD0}'..='\u{FDEF}').chain("<|im_end|>\u{E000}".chars()).collect();
    let writer = PromptWriter::new(&model(None, SPECIALS), &config(&json!({}))).unwrap();
    let pieces = writer.render(&functions(), &request).unwrap().pieces;
    assert_eq!(pieces.len(), 2);
    assert!(
        pieces.concat().ends_with(&format!("user\n{request}<|im_end|>\n<|im_start|>assistant\n"))
    );
}

#[test]
fn the_schema_of_the_configuration_is_up_to_date() {
    let path = root().join("config/prompts.schema.json");
    if env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, PromptsConfig::schema()).unwrap();
    }
    assert_eq!(
        fs::read_to_string(path).unwrap(),
        PromptsConfig::schema(),
        "UPDATE_GOLDEN=1 rewrites it"
    );
}

#[test]
fn shipped_configurations_are_valid_and_name_their_schema() {
    let schema: Value = serde_json::from_str(&PromptsConfig::schema()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    assert!(shipped().len() >= 4);
    for path in shipped() {
        let json: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        assert!(validator.is_valid(&json), "{}", path.display());
        assert_eq!(json["$schema"], "prompts.schema.json", "{}", path.display());
        let config = PromptsConfig::load(&path).unwrap();
        for specials in [SPECIALS, &["<start_of_turn>"], &[]] {
            let writer = PromptWriter::new(&model(None, specials), &config).unwrap();
            let prompt = writer.render(&functions(), "Ring it").unwrap().pieces.concat();
            assert!(prompt.contains("Ring it") && prompt.contains(r#""name": "ring""#), "{prompt}");
        }
    }
    assert_eq!(
        PromptsConfig::load(&root().join("config/prompts.json")).unwrap(),
        PromptsConfig::builtin()
    );
}

#[test]
fn a_template_may_stand_in_a_file_beside_the_configuration() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p.json");
    fs::write(&path, r#"{"template": "chat.jinja"}"#).unwrap();
    let error = PromptsConfig::load(&path).unwrap_err().to_string();
    assert!(
        error.contains("/template: no Jinja text, and as a file name it cannot be read: "),
        "{error}"
    );
    fs::write(folder.path().join("chat.jinja"), "{{ messages[-1].content }}").unwrap();
    assert_eq!(
        PromptsConfig::load(&path).unwrap().template.as_deref(),
        Some("{{ messages[-1].content }}")
    );
}

/// Every string and number in the arguments of the shared cases.
fn leaves(json: &Value, found: &mut BTreeSet<String>) {
    match json {
        Value::Array(items) => items.iter().for_each(|item| leaves(item, found)),
        Value::Object(map) => map.values().for_each(|item| leaves(item, found)),
        Value::String(text) => {
            found.insert(text.to_lowercase());
        }
        Value::Number(number) => {
            found.insert(number.as_f64().unwrap_or_default().to_string());
        }
        Value::Null | Value::Bool(_) => {}
    }
}

#[test]
fn no_example_has_a_value_of_a_shared_case() {
    let mut shared = BTreeSet::new();
    for path in ["public11.json", "many110.json", "mixed_dev.json"] {
        if let Ok(bytes) = fs::read(root().join("../shared/data/callme").join(path)) {
            leaves(&serde_json::from_slice(&bytes).unwrap(), &mut shared);
        }
    }
    for path in shipped() {
        for example in PromptsConfig::load(&path).unwrap().examples {
            let mut own =
                BTreeSet::from([example.prompt.to_lowercase(), example.name.to_lowercase()]);
            leaves(&Value::Object(example.parameters), &mut own);
            let both: Vec<_> = own.intersection(&shared).collect();
            assert!(both.is_empty(), "{}: {both:?}", path.display());
        }
    }
}

const FRAGMENTS: &[&str] = &[
    "<|im_start|>",
    "<|im_end|>",
    "<|im_",
    "end|>",
    "start|>",
    "<",
    "|",
    ">",
    "\n",
    " ",
    "\n\n",
    "  ",
    "a",
    "\"",
    "\\",
    "\\n",
    "é",
    "\u{FDD0}",
    "\u{FDD1}",
    "<tool_call>",
    "</tool_",
    "call>",
    "\t",
];

fn hostile_text() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(FRAGMENTS), 0..12).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// The same conversation is rendered with neutral texts first, so the template's own markers are known.
    #[test]
    fn no_special_text_touches_an_untrusted_character(request in hostile_text(), description in hostile_text()) {
        let specials = ["<|im_start|>", "<|im_end|>", "<tool_call>", "</tool_call>", "\n\n", "\n\n\n", "\u{2581}\u{2581}", "\\n\\n", "d\": \""];
        let template = "<|im_{{ messages[0].content }}|>|{{ (tools or [{'function': {}}])[0].function.description }}\n{{ tools | tojson }}<|im_end|>{{ messages[0].content | trim }}{{ messages[0].content }}\n";
        let config = config(&json!({"template": template, "tools": "template", "system": "", "examples": [], "call_opener": ""}));
        let writer = PromptWriter::new(&model(None, &specials), &config).unwrap();
        let tool = json!([{"name": "f", "description": description, "parameters": {"type": "object", "properties": {}}}]);
        let functions = definitions::parse(tool.to_string().as_bytes()).unwrap();
        let pieces = writer.render(&functions, &request).unwrap().pieces;

        let json = |value: &Value| value.to_string();
        let tool = json!({"name": "f", "description": description});
        let tools = format!(
            "[{{\"type\": \"function\", \"function\": {{\"name\": {}, \"description\": {}, \"parameters\": {{\"type\": \"object\", \"properties\": {{}}}}}}}}]",
            json(&tool["name"]), json(&tool["description"])
        );
        let space = |c: char| c.is_whitespace();
        // (text, is it the template's own)
        let parts = [
            ("<|im_", true), (&request, false), ("|>|", true), (&description, false), ("\n", true), (&tools, false), ("<|im_end|>", true),
            (request.trim_matches(space), false), (&request, false), // The template's last line break is jinja2's to drop.
        ];
        prop_assert_eq!(pieces.concat(), parts.iter().map(|(text, _)| *text).collect::<String>());

        let mut own = Vec::new();
        for (text, trusted) in parts {
            own.extend(std::iter::repeat_n(trusted, text.len()));
        }
        let mut at = 0;
        for piece in &pieces {
            for special in specials.iter().map(|text| text.replace('\u{2581}', " ")) {
                for start in (0..piece.len()).filter(|&start| piece.as_bytes()[start..].starts_with(special.as_bytes())) {
                    let range = at + start..at + start + special.len();
                    // The frame of the JSON is the template's; a marker may stand in it, but none of the list does.
                    prop_assert!(own[range].iter().all(|&own| own), "{special:?} in {piece:?}");
                }
            }
            at += piece.len();
        }
        prop_assert_eq!(pieces.iter().filter(|piece| piece.contains("<|im_end|>")).count(), 1);
    }
}

// Against Python's jinja2.

/// Runs `tests/prompt/reference.py` with the packages of `tests/models/make.sh`.
fn reference(input: &str) -> String {
    let mut child = Command::new("python3")
        .arg(root().join("tests/prompt/reference.py"))
        .env("PYTHONPATH", root().join("target/python"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_owned();
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

#[test]
#[ignore = "needs jinja2 in target/python"]
fn the_stored_renderings_are_those_of_jinja2() {
    let cases = fs::read_to_string(root().join("tests/prompt/jinja.jsonl")).unwrap();
    let rendered = reference(&cases);
    assert_eq!(rendered.lines().count(), cases.lines().count());
    for (case, rendered) in cases.lines().zip(rendered.lines()) {
        let (case, rendered): (Value, Value) =
            (serde_json::from_str(case).unwrap(), serde_json::from_str(rendered).unwrap());
        assert_eq!(case["expected"], rendered, "{case}");
    }
}
