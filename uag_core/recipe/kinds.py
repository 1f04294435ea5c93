# ruff: noqa: E501 - lists of words and forms read best in long lines
"""The kinds of request that the training text covers: topics, openings and forms.

A request is built from a form: literal text with ``{topic}`` and ``{start}`` filled in at random,
``{n}``-style numbers drawn by `fill`, and ``{gen:K}`` holes of at most K tokens that the target
itself writes, going on in the user's turn. No outside text is used.
"""

from __future__ import annotations

import random
import re

from . import written
from .written import entries

TOPICS = entries(
    """gardening|coffee|the moon|volcanoes|bicycles|chess|jazz|the Roman Empire|bread baking|cats
    dogs|photosynthesis|electric cars|solar power|climate change|the stock market|inflation|budgeting
    meditation|sleep|running|yoga|nutrition|vaccines|the heart|the brain|DNA|evolution|dinosaurs|whales
    bees|rainforests|deserts|rivers|mountains|earthquakes|hurricanes|the water cycle|gravity|black holes
    light|sound|magnets|electricity|atoms|chemistry|acids|steel|plastics|recycling|bridges|trains|ships
    airplanes|rockets|satellites|the internet|computers|databases|encryption|machine learning|robots
    smartphones|video games|movies|photography|painting|sculpture|poetry|novels|theater|opera|dance
    guitar|piano|drums|football|basketball|tennis|swimming|skiing|hiking|camping|fishing|cooking|soup
    pasta|chocolate|tea|wine|cheese|fruit|vegetables|restaurants|hotels|travel|Paris|Japan|Brazil|Egypt
    India|Kenya|Canada|Iceland|London|New York|museums|libraries|schools|teachers|exams|college|careers
    job interviews|remote work|meetings|leadership|teamwork|marketing|small businesses|taxes|insurance
    mortgages|real estate|furniture|houses|interior design|clothes|shoes|jewelry|weddings|birthdays
    holidays|family|friendship|parenting|grandparents|pets|farms|horses|birds|insects|trees|flowers
    weather|winter|summer|oceans|fish|islands|pirates|knights|castles|dragons|ghosts|detectives|spies
    astronauts|scientists|doctors|nurses|engineers|lawyers|judges|elections|democracy|human rights
    history of science|World War II|the Renaissance|ancient Greece|mythology|philosophy|ethics|religion
    psychology|memory|habits|stress|happiness|languages|grammar|spelling|statistics|probability|algebra
    geometry|calculus|prime numbers|logic|puzzles|riddles|magic|public transport|city planning|hospitals
    open source|version control|web design|data analysis|spreadsheets|cloud computing|networks|testing
    sorting|recursion|a to-do app|a weather app|a small shop|a library|a bakery|a train station|a robot
    a lost key|an old map|a lighthouse|a storm|a letter|a secret garden|a clock|a mirror|a violin"""
)

STARTS = entries(
    """The|A|In|On|Last week|According to|Scientists|Many people|After|When|Dr.|The company|Our
    The city of|Researchers at|In 2015,|For centuries,|During|Every year|The new|Maria|John|It was|Most
    At the|The history of|One of the|The river|My|We|She|He|They|Although|Since|The museum|Students at
    The government|Yesterday|The first|Anna and her brother|The team|As|Because of|There are|While"""
)

LANGUAGES = ["French", "Spanish", "German", "Italian", "Portuguese"]
ROLES = entries(
    """a pirate|a chef|a history teacher|a detective|a travel guide|a doctor|a robot|a wizard|a coach
    a librarian|a king|an astronaut|a shopkeeper|a job interviewer|a scientist|a poet|a grandmother
    a software engineer|a museum guide|a ghost|a knight|a news reporter|a therapist|a gardener"""
)
CODE = entries("Python|Python|Python|JavaScript|SQL|HTML|C|Java|Bash|C++|TypeScript|Go|Rust")

FORMS: dict[str, list[str]] = {
    "chat": ["{gen:60}"],
    "code": [
        "Write a {code} function{gen:30}", "Write a {code} function that{gen:30}",
        "Write a function in {code} to{gen:30}", "How do I{gen:15} in {code}?",
        "Write a {code} program{gen:30}", "Can you write a {code} script that{gen:30}",
        "Create a {code} class{gen:30}", "Write {code} code for {topic}{gen:25}",
        "Fix the bug in this {code} code:\n\n{gen:80}", "Explain what this code does:\n\n{gen:80}",
        "Give me an example of{gen:15} in {code}.", "Implement{gen:20} in {code}.",
        "Write a unit test{gen:25}", "Write a regular expression{gen:25}",
        "Write a SQL query{gen:30}", "What does the {code} error{gen:30}",
    ],
    "explanation": [
        "Explain {topic}{gen:20}", "Explain how{gen:25}", "What is{gen:20}", "Why do{gen:20}",
        "How does{gen:20}", "What is the difference between{gen:20}", "Describe{gen:20}",
        "Explain the concept of{gen:20}", "Explain {topic} to a child.", "Why is {topic}{gen:15}",
        "What causes{gen:15}", "How do {topic}{gen:15}", "Tell me about {topic}{gen:10}",
        "In simple terms, what{gen:20}", "Can you explain{gen:20}", "Who was{gen:12}",
        "When did{gen:15}", "Compare{gen:20}", "What are the benefits of{gen:15}",
    ],
    "summary": [
        "Summarize the following text:\n\n{start}{gen:120}",
        "Summarize this paragraph in one sentence:\n\n{start}{gen:110}",
        "Give a short summary of this text about {topic}.\n\n{start}{gen:120}",
        "Please summarize the article below.\n\n{start}{gen:130}",
        "What is the main idea of this passage?\n\n{start}{gen:110}",
        "{start}{gen:110}\n\nSummarize the text above in two sentences.",
        "TL;DR of this:\n\n{start}{gen:110}",
        "Write a headline and a brief summary for this story:\n\n{start}{gen:100}",
    ],
    "translation": [
        "Translate to {language}: {start}{gen:25}", "Translate into {language}: \"{start}{gen:18}\"",
        "Translate the following sentence into {language}:\n\n{start}{gen:25}",
        "How do you say \"{gen:10}\" in {language}?", "Translate this to {language}: I{gen:18}",
        "Translate from {language} to English: {gen:25}",
        "What does \"{gen:10}\" mean in {language}?",
        "Please translate the paragraph below to {language}.\n\n{start}{gen:60}",
    ],
    "qa_context": [
        "Read the text and answer the question.\n\nText: {start}{gen:90}\n\nQuestion:{gen:20}",
        "Context: {start}{gen:90}\n\nQuestion: {who}{gen:18}\n\nAnswer:",
        "{start}{gen:90}\n\nBased on the passage above, {who}{gen:18}",
        "Answer using only the information below.\n\n{start}{gen:90}\n\n{Who}{gen:18}",
        "Use the following text about {topic} to answer: {who}{gen:15}\n\n{start}{gen:90}",
        "Passage: {start}{gen:80}\n\nIs it true that{gen:15}",
    ],
    "arithmetic": [
        "What is {n} + {n}?", "What is {n} - {n}?", "Calculate {s} * {n}.", "What is {n} / {s}?",
        "What is {s}% of {n}?", "Solve for x: {s}x + {s} = {n}", "What is {s} squared?",
        "{name} has {s} apples and buys {s} more. How many apples does {name} have now?",
        "A train travels {n} miles in {s} hours.{gen:20}", "If a shirt costs ${s} and{gen:25}",
        "{name} has ${n}.{gen:35}", "A rectangle is {s} cm by {s} cm.{gen:15}",
        "There are {s} students in a class.{gen:30}", "A recipe needs {s} cups of{gen:30}",
        "Compute the average of {s}, {s}, {s} and {s}.", "Convert {n}{gen:10}",
        "If {s} workers{gen:25}", "{name} runs {s} miles{gen:25}", "Simplify{gen:15}",
        "A store sells{gen:40}", "What is the perimeter{gen:15}", "Solve:{gen:20}",
    ],
    "list": [
        "List {k}{gen:15}", "Give me {k} ideas for {topic}.", "Give me a list of{gen:15}",
        "Name {k}{gen:12}", "What are {k} ways to{gen:12}", "List the{gen:15}",
        "Suggest {k} names for {topic}.", "What are the top {k}{gen:12}",
        "List {k} facts about {topic}.", "Brainstorm{gen:15}", "Make a packing list{gen:12}",
        "Give {k} tips for{gen:12}", "List {k} pros and cons of {topic}.", "Recommend{gen:15}",
        "Give me a step-by-step guide to{gen:12}", "Make a shopping list for{gen:12}",
    ],
    "extraction": [
        "Extract the names and dates from this text:\n\n{start}{gen:80}",
        "Extract all{gen:6} from the following text:\n\n{start}{gen:80}",
        "List the people mentioned below.\n\n{start}{gen:80}",
        "Find the keywords in this paragraph:\n\n{start}{gen:80}",
        "Turn this text into a JSON object with the keys{gen:10}:\n\n{start}{gen:60}",
        "Is the sentiment of this review positive or negative?\n\n{gen:60}",
        "Classify the following text as{gen:10}:\n\n{start}{gen:50}",
        "What are the key points of this email?\n\nHi {name},{gen:90}",
        "Extract the action items from these notes:\n\n{gen:80}",
    ],
    "roleplay": [
        "You are {role}.{gen:30}", "Pretend you are {role}.{gen:25}", "Act as {role}.{gen:30}",
        "Pretend to be {role} and tell me about {topic}.", "I want you to act as{gen:35}",
        "Imagine you are {role}.{gen:25}", "As {role}, describe {topic}{gen:10}",
        "Let's role-play. You are {role} and I am{gen:25}", "Speak like {role}:{gen:25}",
    ],
    "letter": [
        "Write a letter to{gen:20}", "Write an email to my boss{gen:20}",
        "Write a thank-you note{gen:20}", "Write a cover letter for{gen:20}",
        "Draft an email{gen:25}", "Write a formal letter{gen:20}", "Write a short message{gen:20}",
        "Write a complaint{gen:20}", "Write an invitation{gen:20}", "Write an apology{gen:20}",
        "Help me write an email about {topic}{gen:15}", "Write a product description for{gen:15}",
        "Write a blog post about {topic}{gen:10}", "Write a speech{gen:20}",
        "Write a tweet about {topic}{gen:10}",
    ],
    "story": [
        "Write a short story about {topic}{gen:15}", "Write a story{gen:20}",
        "Tell me a story about{gen:15}", "Write a poem about {topic}{gen:10}", "Write a haiku{gen:8}",
        "Continue this story: {start}{gen:50}", "Write a dialogue between{gen:20}",
        "Write a bedtime story{gen:15}", "Write the opening paragraph of{gen:20}",
        "Describe a scene{gen:20}", "Tell me a joke about {topic}.", "Write a song about{gen:12}",
    ],
    "rewriting": [
        "Rewrite this sentence to be more formal: {start}{gen:25}",
        "Correct the grammar: {gen:25}", "Paraphrase the following text:\n\n{start}{gen:50}",
        "Make this shorter: {start}{gen:50}", "Rewrite this email to be more polite:\n\n{gen:60}",
        "Fix the spelling mistakes: {gen:25}", "Rewrite in the past tense: {start}{gen:20}",
        "Improve the following paragraph:\n\n{start}{gen:60}", "Simplify this text: {start}{gen:50}",
        "You're an AI assistant for text re-writing. Rewrite this: {start}{gen:60}",
    ],
    "advice": [
        "How can I{gen:20}", "How do I{gen:20}", "What should I{gen:20}", "I'm feeling{gen:25}",
        "I need help with {topic}{gen:15}", "Plan{gen:20}", "Create a plan for{gen:15}",
        "I want to learn {topic}.{gen:15}", "Should I{gen:20}", "My{gen:30}", "Hi,{gen:25}",
        "Give me advice on{gen:15}", "Suggest a recipe{gen:12}", "I have{gen:25}", "Can you{gen:25}",
    ],
}  # fmt: skip

# The share of each kind, relative to the others. Long prompts teach reading, short ones writing.
WEIGHTS = dict.fromkeys(FORMS, 1.0) | {"chat": 0.7, "code": 1.5, "explanation": 1.3}
WEIGHTS |= {
    "written_code": 2.0, "written_question": 2.5, "written_letter": 0.8, "written_story": 0.8,
    "written_list": 1.8, "written_role": 1.2, "written_translation": 2.0, "written_reading": 3.0,
}  # fmt: skip
FORMS |= written.FORMS

_NAMES = ["Tom", "Sarah", "Emma", "Liam", "Maya", "Carlos", "Nina", "Ahmed", "Lucy", "Ben", "Olga"]
_WHO = ["who", "what", "when", "where", "why", "how many", "how", "which"]

_LISTS = written.WORDS | {
    "topic": TOPICS, "start": STARTS, "language": LANGUAGES, "role": ROLES, "code": CODE,
    "who": _WHO, "k": ["three", "five", "5", "3", "10", "ten", "four", "some"],
}  # fmt: skip


def fill(form: str, rng: random.Random) -> str:
    """Fill every hole of ``form`` but the ``{gen:K}`` ones; each hole is drawn anew."""

    def draw(match: re.Match[str]) -> str:
        name = match.group(1)
        if name in _LISTS:
            return rng.choice(_LISTS[name])
        makers = {
            "Who": lambda: rng.choice(_WHO).capitalize(),
            "n": lambda: str(rng.choice([rng.randint(11, 99), rng.randint(100, 2000)])),
            "s": lambda: str(rng.randint(2, 40)),
        }
        return makers[name]()

    # The same person all through one request.
    form = form.replace("{name}", rng.choice(_NAMES))
    return re.sub(r"\{(?!gen:)(\w+)\}", draw, form)
