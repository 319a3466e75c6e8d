//! Prompts for the models that are here, against Python's jinja2 and against their special tokens.

use std::io::{self, Write as _};
use std::sync::OnceLock;
use std::{fs, path::Path};

use call_me_maybe::definitions::{self, FunctionDef};
use call_me_maybe::engine::llama::Vocabulary;
use call_me_maybe::prompt::{ModelText, PromptWriter, PromptsConfig};
use serde_json::{Value, json};

use super::{config, functions, reference, root};

/// The models here: every GGUF in `models/`, and the tiny ones, which have the templates from npm.
fn models() -> &'static [(String, ModelText)] {
    static MODELS: OnceLock<Vec<(String, ModelText)>> = OnceLock::new();
    MODELS.get_or_init(|| {
        let ggufs = fs::read_dir(root().join("models")).unwrap().map(|entry| entry.unwrap().path());
        let ggufs = ggufs.filter(|path| path.extension().is_some_and(|end| end == "gguf"));
        let tiny = ["models/test/tiny-qwen3.gguf", "models/test/tiny-gemma3.gguf"];
        let paths = ggufs.chain(tiny.map(|name| root().join(name)));
        let text = |path: &Path| Vocabulary::load(path).unwrap().text().clone();
        paths.map(|path| (path.display().to_string(), text(&path))).collect()
    })
}

/// Where npm was not there, the tiny Qwen3 has the stand-in's template: not the one to be tested.
fn lacks_qwen3() -> bool {
    root().join("models/test/without-npm").exists()
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
        model.specials.iter().step_by(1 + model.specials.len() / 8).flat_map(|special| {
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
    reference(&lines).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
#[ignore = "needs a GGUF in models/"]
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
    if lacks_qwen3() {
        // Past the test's capture, so that it is seen.
        let line = "*** without npm: QWEN3'S TEMPLATE IS NOT COMPARED WITH JINJA2 ***";
        writeln!(io::stderr(), "{line}").unwrap();
    }
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
    }
    let templates = models().iter().filter_map(|(_, model)| model.chat_template.as_deref());
    let is_qwen3 = |template: &str| template.contains("enable_thinking");
    assert_ne!(templates.filter(|template| is_qwen3(template)).count() > 0, lacks_qwen3());
}

#[test]
#[ignore = "needs a GGUF in models/"]
fn no_request_adds_a_special_token_of_the_model() {
    for (path, model) in models() {
        let writer = PromptWriter::new(model, &config(&json!({}))).unwrap();
        let shown = model.specials.iter().map(|special| special.replace('\u{2581}', " "));
        let shown: Vec<String> = shown.filter(|special| special.chars().count() > 1).collect();
        // The pieces with something between that is in no special text.
        let pieces =
            |request: &str| writer.render(&functions(), request).unwrap().pieces.join("\u{10FFFF}");
        let own = pieces("a");
        let singles = shown.iter().step_by(1 + shown.len() / 25).cloned();
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
