"""The Compare tab: layout only. Wires no event and knows no engine.

Every component that an event touches is a field of `CompareTab`; `inputs` names those that make
up a request.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import gradio as gr
from gradio.components import Component

from uag_core.config import (
    DEFAULT_MAX_NEW_TOKENS,
    DTYPES,
    REFERENCES,
)
from uag_core.ui import methods, model_field, model_picker, results_area, runs_layout, token_html

EXAMPLES = Path(__file__).resolve().parents[2] / "assets" / "examples.json"
PLAIN_TITLE, PLAIN_SUBTITLE = "Plain decoding", "the target alone, one token per forward"

# Keeps a growing answer scrolled to its end, unless the reader has scrolled up; one that was opened
# is shown from its beginning.
STICK_TO_END = """
const box = () => element.querySelector('.uag-answer');
let stick = true, running = false, shown = '';
element.addEventListener('scroll', (event) => {
  if (event.target !== box()) return;
  stick = box().scrollHeight - box().scrollTop - box().clientHeight < 24;
}, true);
new MutationObserver(() => {
  if (!box()) return;
  const text = box().querySelector('.uag-text').textContent, was = running;
  if (!text) stick = true;
  running = element.querySelector('.uag-panel').dataset.state === 'active';
  if (stick && (running || was)) box().scrollTop = box().scrollHeight;
  else if (!running && !text.startsWith(shown)) box().scrollTop = 0;
  shown = text;
}).observe(element, {childList: true, subtree: true, characterData: true});
"""


@dataclass(frozen=True)
class Example:
    """A prompt to click: the kind it stands for, and its text."""

    kind: str
    prompt: str


@dataclass(frozen=True)
class CompareTab:
    """The components of the tab, by the role they play."""

    inputs: dict[str, Component]
    prompt: gr.Textbox
    examples: list[tuple[gr.Button, Example]]
    run: gr.Button
    stop: gr.Button
    status: gr.HTML
    error: gr.HTML
    plain: gr.HTML
    assisted: gr.HTML
    bar: runs_layout.RunsBar
    results: results_area.ResultsArea
    picker: model_picker.ModelPicker
    ticket: gr.State
    withdrawn: gr.State


def load_examples() -> list[Example]:
    return [Example(**item) for item in json.loads(EXAMPLES.read_text(encoding="utf-8"))]


def number_field(label: str, placeholder: str, value: str, elem_id: str) -> gr.Textbox:
    """A number that may be left blank. `gr.Number` shows a missing value as 0, which is a value."""
    return gr.Textbox(
        value,
        label=label,
        placeholder=placeholder,
        max_lines=1,
        min_width=130,
        elem_id=elem_id,
        html_attributes=gr.InputHTMLAttributes(autocorrect="off", spellcheck=False),
    )


def empty_panel(title: str, subtitle: str) -> str:
    return token_html.panel(
        title=title, subtitle=subtitle, answer="", placeholder="The answer appears here."
    )


def _prompt_column(inputs: dict[str, Component]) -> list[tuple[gr.Button, Example]]:
    inputs["prompt"] = gr.Textbox(
        label="Prompt",
        lines=7,
        max_lines=14,
        placeholder="What should the target model answer?",
        elem_id="prompt",
        autofocus=True,
    )
    with gr.Row(elem_id="examples"):
        gr.HTML('<span class="uag-label">Examples</span>', apply_default_css=False)
        return [
            (
                gr.Button(example.kind, size="sm", min_width=0, elem_classes="uag-chip"),
                example,
            )
            for example in load_examples()
        ]


def _main_settings(inputs: dict[str, Component]) -> None:
    inputs["target"] = model_field.create("target", "target", "the model whose answer you want")
    inputs["assistant"] = model_field.create(
        "assistant", "assistant", "the small model that drafts; any tokenizer"
    )
    inputs["method"] = gr.Dropdown(
        methods.CHOICES,
        value="uag",
        label="Method",
        info="what proposes the tokens that the target verifies",
        elem_id="method",
    )


def _length_and_temperature(inputs: dict[str, Component]) -> None:
    with gr.Row(elem_classes="uag-tight"):
        inputs["max_new_tokens"] = number_field(
            "New tokens", str(DEFAULT_MAX_NEW_TOKENS), str(DEFAULT_MAX_NEW_TOKENS), "max-new-tokens"
        )
        inputs["temperature"] = number_field("Temperature", "0, greedy", "", "temperature")


def _sampling_settings(inputs: dict[str, Component]) -> None:
    blanks = {
        "seed": ("Seed", "drawn"),
        "top_k": ("Top-k", "off"),
        "top_p": ("Top-p", "off"),
        "min_p": ("Min-p", "off"),
        "repetition_penalty": ("Repetition penalty", "off"),
        "no_repeat_ngram_size": ("No-repeat n-gram", "off"),
    }
    with gr.Row():
        for name, (label, placeholder) in blanks.items():
            inputs[name] = number_field(label, placeholder, "", name.replace("_", "-"))


def _text_settings(inputs: dict[str, Component]) -> None:
    with gr.Row():
        inputs["system"] = gr.Textbox(
            label="System prompt", lines=2, min_width=240, elem_id="system"
        )
        inputs["stop"] = gr.Textbox(
            label="Stop strings",
            info="one per line; \\n is a newline",
            lines=2,
            min_width=240,
            elem_id="stop-strings",
        )
        inputs["raw"] = gr.Checkbox(
            False,
            label="Raw text",
            info="continue the prompt, no chat template",
            min_width=200,
            elem_id="raw",
        )


def _engine_settings(inputs: dict[str, Component]) -> None:
    with gr.Row():
        inputs["dtype"] = gr.Dropdown(
            list(DTYPES), value="auto", label="Precision", min_width=130, elem_id="dtype"
        )
        inputs["device"] = gr.Dropdown(
            ["auto", "cpu", "cuda"],
            value="auto",
            allow_custom_value=True,
            label="Device",
            min_width=130,
            elem_id="device",
        )
        inputs["num_assistant_tokens"] = number_field(
            "Draft tokens", "while it pays", "", "draft-tokens"
        )
        inputs["assistant_confidence_threshold"] = number_field(
            "Confidence threshold", "off", "", "confidence"
        )
        inputs["repeats"] = number_field("Repeats", "1", "1", "repeats")
    with gr.Row():
        inputs["exact"] = gr.Checkbox(
            True,
            label="Exact",
            info="fixed shapes, so that both texts are the same ids",
            min_width=240,
            elem_id="exact",
        )
        inputs["compile"] = gr.Checkbox(
            False,
            label="Compile",
            info="torch.compile, both texts; takes minutes once",
            min_width=240,
            elem_id="compile",
        )
        inputs["references"] = gr.CheckboxGroup(
            list(REFERENCES),
            label="Reference engines",
            info="measured beside ours; each adds a run",
            min_width=300,
            elem_id="references",
        )


def _panels() -> tuple[gr.HTML, gr.HTML]:
    with gr.Row(elem_id="panels", equal_height=True):
        return (
            gr.HTML(
                empty_panel(PLAIN_TITLE, PLAIN_SUBTITLE),
                js_on_load=STICK_TO_END,
                elem_id="plain",
                min_width=300,
                apply_default_css=False,
            ),
            gr.HTML(
                empty_panel(methods.name("uag"), methods.hint("uag")),
                js_on_load=STICK_TO_END,
                elem_id="assisted",
                min_width=300,
                apply_default_css=False,
            ),
        )


def create_compare_tab(shipped: Mapping[str, str] | None = None) -> CompareTab:
    """Lays the tab out inside the current Blocks and returns its components.

    `shipped`: titles of the recorded runs by id.
    """
    inputs: dict[str, Component] = {}
    with gr.Row(elem_id="ask"):
        with gr.Column(scale=3, min_width=320):
            examples = _prompt_column(inputs)
            bar = runs_layout.create_bar(shipped or {})
            _length_and_temperature(inputs)
        with gr.Column(scale=2, min_width=300):
            _main_settings(inputs)
            picker = model_picker.create_picker()
    with gr.Accordion("More settings", open=False, elem_id="more"):
        _text_settings(inputs)
        _sampling_settings(inputs)
        _engine_settings(inputs)
    with gr.Row(elem_id="actions"):
        run = gr.Button("Run", variant="primary", min_width=96, scale=0, elem_id="run")
        stop = gr.Button("Stop", interactive=False, min_width=96, scale=0, elem_id="stop")
        status = gr.HTML(
            token_html.status("Ready"), elem_id="status", min_width=200, apply_default_css=False
        )
    error = gr.HTML(token_html.error(None), elem_id="error", apply_default_css=False)
    plain, assisted = _panels()
    results = results_area.create_results(shipped or {})
    prompt = inputs["prompt"]
    assert isinstance(prompt, gr.Textbox)
    return CompareTab(
        inputs=inputs,
        prompt=prompt,
        examples=examples,
        run=run,
        stop=stop,
        status=status,
        error=error,
        plain=plain,
        assisted=assisted,
        bar=bar,
        results=results,
        picker=picker,
        ticket=gr.State(0),
        withdrawn=gr.State(0),
    )
