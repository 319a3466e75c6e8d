//! Prompts and their configuration, from outside; against Python's jinja2 where that and the models are there.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::{
    collections::BTreeSet,
    env, fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::OnceLock,
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

/// Runs `tests/prompt/reference.py` with the Python of `CALLME_PYTHON`.
fn reference(arguments: &[&str], input: &str) -> String {
    let python = env::var("CALLME_PYTHON").unwrap_or_else(|_| "python3".into());
    let mut child = Command::new(python)
        .arg(root().join("tests/prompt/reference.py"))
        .args(arguments)
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
#[ignore = "needs Python with jinja2"]
fn the_stored_renderings_are_those_of_jinja2() {
    let cases = fs::read_to_string(root().join("tests/prompt/jinja.jsonl")).unwrap();
    let rendered = reference(&["render"], &cases);
    assert_eq!(rendered.lines().count(), cases.lines().count());
    for (case, rendered) in cases.lines().zip(rendered.lines()) {
        let (case, rendered): (Value, Value) =
            (serde_json::from_str(case).unwrap(), serde_json::from_str(rendered).unwrap());
        assert_eq!(case["expected"], rendered, "{case}");
    }
}

/// The models here: every GGUF of `CALLME_MODELS` and every `tokenizer_config.json` of `CALLME_TOKENIZERS` (`:` between).
fn models() -> &'static [(String, ModelText)] {
    static MODELS: OnceLock<Vec<(String, ModelText)>> = OnceLock::new();
    MODELS.get_or_init(read_models)
}

fn read_models() -> Vec<(String, ModelText)> {
    let folder = env::var_os("CALLME_MODELS").map_or_else(|| root().join("models"), PathBuf::from);
    let ggufs = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let ggufs = ggufs.filter(|path| path.extension().is_some_and(|end| end == "gguf"));
    let tokenizers = env::var_os("CALLME_TOKENIZERS").unwrap_or_default();
    let paths = ggufs.chain(env::split_paths(&tokenizers));
    let models = paths.map(|path| {
        let model: Value =
            serde_json::from_str(&reference(&["model", path.to_str().unwrap()], "")).unwrap();
        let text = |key: &str| model[key].as_str().map(ToOwned::to_owned);
        let specials = model["specials"]
            .as_array()
            .unwrap()
            .iter()
            .map(|text| text.as_str().unwrap().to_owned());
        let model = ModelText {
            chat_template: text("chat_template"),
            bos: text("bos").unwrap_or_default(),
            eos: text("eos").unwrap_or_default(),
            specials: specials.collect(),
        };
        (path.display().to_string(), model)
    });
    models.collect()
}

fn requests(model: &ModelText) -> Vec<String> {
    let odd = [
        "",
        " ",
        "\n",
        "Ring it",
        "  both ends \n\n",
        "\n\nthree\n\n\nbreaks",
        "tab\there",
        "漢字とカナ 🦀🎉",
        "naïve Ünïcödé",
        "'single' \"double\" \\back\\ {\"json\": [1]}",
        "{{ messages }} {% raw %} {# #}",
        "<think>\nhm\n</think>\n\nyes",
        "<tool_response>\n4\n</tool_response>",
        "a\r\nb\rc",
        "\u{FDD0}\u{FDD1}",
        "\u{2581}\u{2581}x  y",
        "\u{1C} sep \u{1F}",
    ];
    let longest = "word and  more\n\n".repeat(1300);
    let odd = odd.into_iter().map(ToOwned::to_owned).chain([longest]);
    let specials =
        model.specials.iter().step_by(1 + model.specials.len() / 15).flat_map(|special| {
            [format!("Ring {special} it"), special.clone(), format!("{special}{special}\n")]
        });
    odd.chain(specials).collect()
}

/// What Hugging Face's `apply_chat_template` would be given for the same prompt.
fn reference_case(
    model: &ModelText,
    config: &Value,
    functions: &[FunctionDef],
    request: &str,
    tools_text: &str,
) -> Value {
    let template = model.chat_template.as_deref().unwrap();
    let native = template.contains("if tools");
    let mut messages = Vec::new();
    let listed: Vec<Value> = functions.iter().map(FunctionDef::tool).collect();
    let system = config["system"].as_str().unwrap();
    let parts = [system, if native { "" } else { tools_text }];
    let system = parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n\n");
    if !system.is_empty() {
        messages.push(json!({"role": "system", "content": system}));
    }
    for example in config["examples"].as_array().unwrap() {
        messages.push(json!({"role": "user", "content": example["prompt"]}));
        let call = json!({"name": example["name"], "arguments": example["parameters"]});
        messages.push(if native {
            json!({"role": "assistant", "content": "", "tool_calls": [{"type": "function", "function": call}]})
        } else {
            json!({"role": "assistant", "content": example["call"]})
        });
    }
    messages.push(json!({"role": "user", "content": request}));
    let tools = if native && !listed.is_empty() { json!(listed) } else { Value::Null };
    json!({"template": template, "context": {"messages": messages, "tools": tools, "add_generation_prompt": true,
        "enable_thinking": false, "bos_token": model.bos, "eos_token": model.eos}})
}

fn render_all(cases: &[Value]) -> Vec<Value> {
    let lines = cases.iter().map(Value::to_string).collect::<Vec<_>>().join("\n");
    reference(&["render"], &lines).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
#[ignore = "needs Python with jinja2 and gguf, and the GGUFs"]
fn prompts_are_byte_for_byte_what_jinja2_gives() {
    let functions = json!([
        {"name": "<|im_end|>", "description": "<end_of_turn>\n\n<tool_call>  \"quoted\" & <b>", "parameters": {"type": "object",
            "properties": {"items": {"type": "array", "items": {"type": "string", "enum": ["</tool_call>", "é\n"]}},
                "n": {"type": "number", "minimum": 5, "maximum": 1.0, "multipleOf": 123_456_789_012_345_678_901_234_567_890_u128}},
            "required": ["items"]}},
        {"name": "plain", "parameters": {"type": "object", "properties": {}}},
    ]);
    let functions = definitions::parse(functions.to_string().as_bytes()).unwrap();
    let examples = json!([
        {"prompt": "Dim <|im_start|>\n\nit", "name": "dim", "parameters": {"room": "</tool_call>\n", "to": 0.5, "deep": {"a": [null, true]}}},
        {"prompt": "x ", "name": "stop", "parameters": {}},
    ]);
    let calls: Vec<Value> = examples.as_array().unwrap().iter().map(|example| json!({
        "template": "{\"name\": {{ name | tojson }}, \"arguments\": {{ parameters | tojson }}}", "context": example,
    })).collect();
    let calls = render_all(&calls);
    let mut n_models = 0;
    for (path, model) in models() {
        let mut model = model.clone();
        if model.chat_template.is_none() {
            model.chat_template =
                PromptsConfig::load(&root().join("config/gemma-3-270m.json")).unwrap().template;
        }
        for (functions, examples, system) in [
            (&functions[..], &examples, "Be exact.\n\nVery <|im_end|>."),
            (&functions[..], &json!([]), ""),
            (&[], &json!([]), "S"),
            (&[], &examples, ""),
        ] {
            let json = json!({"system": system, "examples": examples});
            let config = PromptsConfig::parse(&json.to_string(), Path::new("test.json")).unwrap();
            let tools: Vec<Value> = functions.iter().map(FunctionDef::tool).collect();
            let text = if tools.is_empty() {
                json!("")
            } else {
                render_all(&[json!({"template": config.tools_text, "context": {"tools": tools}})])
                    [0]
                .clone()
            };
            let mut with_calls = json.clone();
            for (example, call) in
                with_calls["examples"].as_array_mut().unwrap().iter_mut().zip(&calls)
            {
                example["call"] = call.clone();
            }
            let requests = requests(&model);
            let cases: Vec<Value> = requests
                .iter()
                .map(|request| {
                    reference_case(&model, &with_calls, functions, request, text.as_str().unwrap())
                })
                .collect();
            let writer = PromptWriter::new(&model, &config).unwrap();
            let opener = if model.chat_template.as_deref().unwrap().contains("<tool_call>") {
                "<tool_call>\n"
            } else {
                ""
            };
            for ((request, expected), case) in requests.iter().zip(render_all(&cases)).zip(&cases) {
                let pieces = writer.render(functions, request).unwrap().pieces;
                let expected =
                    expected.as_str().unwrap_or_else(|| panic!("{path}: {expected} {case}"));
                assert_eq!(pieces.concat(), format!("{expected}{opener}"), "{path} {request:?}");
            }
        }
        n_models += 1;
    }
    assert!(n_models > 0);
}

#[test]
#[ignore = "needs Python with gguf, and the GGUFs"]
fn no_request_adds_a_special_token_of_the_model() {
    for (path, model) in models() {
        let writer = PromptWriter::new(model, &config(&json!({}))).unwrap();
        let shown = model.specials.iter().map(|special| special.replace('\u{2581}', " "));
        let shown: Vec<String> = shown.filter(|special| special.chars().count() > 1).collect();
        // The pieces with something between that is in no special text.
        let pieces =
            |request: &str| writer.render(&functions(), request).unwrap().pieces.join("\u{10FFFF}");
        let own = pieces("a");
        let singles = shown.iter().step_by(1 + shown.len() / 100).cloned();
        for request in [shown.concat(), shown.join("a")].into_iter().chain(singles) {
            let pieces = pieces(&request);
            assert!(pieces.replace('\u{10FFFF}', "").contains(request.trim()), "{path}");
            for special in &shown {
                assert_eq!(
                    pieces.matches(special).count(),
                    own.matches(special).count(),
                    "{path}: {special:?} of {request:?}"
                );
            }
        }
    }
}
