# ruff: noqa: E501 - lists of words and forms read best in long lines
"""Requests written out by hand: what people ask, where `kinds` lets the target go on by itself.

A request that the target made up wanders off more easily than a person's. These forms say what is
wanted in words of their own, filled from lists; only passages are still the target's. No outside
text is used, and none of this is taken from the evaluation prompts (near copies of those are
dropped when the text is read, see `store.drop_prompts`).
"""

from __future__ import annotations


def entries(text: str) -> list[str]:
    """Entries between bars and line ends."""
    return [
        part for line in text.splitlines() for entry in line.split("|") if (part := entry.strip())
    ]


TASKS = entries(
    """reverse the words of a sentence|count the vowels in a string|find the second largest number in a list
    merge two sorted lists|remove the duplicates from a list|compute the factorial of a number
    check whether a number is prime|convert Celsius to Fahrenheit|find the longest word in a text
    sort a list of people by age|flatten a nested list|print the first twenty Fibonacci numbers
    count how often each word occurs in a text|load settings from a JSON file|append a line to a log file
    check that an email address is valid|make a random password|list all pictures in a directory
    compute the mean and the median of some numbers|search a sorted list|transpose a matrix
    rotate a list by k places|tell whether two words are anagrams|parse a date like 2024-03-15
    convert an integer to a Roman numeral|roll two dice a thousand times|shuffle a deck of cards
    measure how long a function takes|retry a request that failed|split a list into pieces of equal size
    find the greatest common divisor of two integers|add up the digits of a number|encode a text with a Caesar cipher
    multiply two matrices|print a multiplication table|draw a triangle of stars|sort numbers with bubble sort
    sort an array with quicksort|tell whether a year is a leap year|compute the body mass index
    check that brackets are balanced|find the number that is missing from a range|count the lines of a file
    convert a decimal number to binary|capitalize the first letter of every word|zip two lists into a dictionary
    find the common elements of two lists|parse command line arguments|rename many files at once
    draw a bar chart|resize a picture|send a message over a socket|cache the results of a slow function
    walk through a tree level by level|find a path through a maze|play rock, paper, scissors
    guess a number between 1 and 100|keep track of a shopping cart|convert miles to kilometers
    validate a credit card number|remove the punctuation from a text|group words by their first letter
    compare two files line by line|compute the distance between two points|count down from ten
    make a list of the squares of 1 to 10|replace every tab by four spaces|find the index of an element
    round a number to two decimals|check whether a key is in a dictionary|turn a list into a string"""
)

CLASSES = entries(
    """a stack|a queue|a linked list|a binary search tree|a rectangle|a circle|a student with grades
    a library with books|a parking lot|a shopping cart|a simple calculator|a timer|a deck of cards|a playlist
    a contact list|a vending machine|a traffic light|a temperature sensor|a to-do list|a chess piece"""
)

QUERIES = entries(
    """lists the employees hired in 2020|counts the orders of each customer|finds products that were never sold
    adds a column for the phone number|deletes rows older than a year|joins students and courses
    returns the average salary of each department|shows the ten most expensive products
    updates the price of one item|creates a table for books|finds duplicate email addresses"""
)

PAGES = entries(
    """a contact form|a table with three columns|a navigation bar|a photo gallery|a login form|a two-column layout
    a page with a dark background|a list of links|an image that is centered|a footer|a card with a shadow"""
)

QUESTIONS = entries(
    """Why do we dream?|Why is the ocean salty?|How do birds find their way south?|What causes thunder?
    Why do cats purr?|How is glass made?|What is a black hole?|Why do we have seasons?|How does a magnet work?
    What is the difference between a virus and a bacterium?|How do planes stay in the air?|What is inflation?
    Why do onions make us cry?|How does the stock market work?|What is machine learning?|What is a database index?
    How do bees make honey?|Why does ice float on water?|What is the greenhouse effect?|How do computers store numbers?
    What is the difference between a comet and an asteroid?|How does the heart pump blood?|What is a mortgage?
    Why do we yawn?|How do solar panels produce electricity?|What is the theory of relativity?|What is DNA?
    How are mountains formed?|Why do we need sleep?|What is a renewable resource?|How does a battery work?
    What is the difference between a lake and a sea?|How do fish breathe?|What is supply and demand?
    Why did the Roman Empire fall?|Who invented the telephone?|What was the Industrial Revolution?
    What does the United Nations do?|How does a search engine work?|What is encryption?|What is an algorithm?
    How do antibiotics work?|What is the difference between RAM and a hard drive?|Why is the Dead Sea so salty?
    How does GPS work?|What is a blockchain?|How do elevators work?|What is a healthy diet?|What is gravity?
    What happens when water boils?|How does a camera work?|What is the Silk Road?|What is a metaphor?
    Why do stars twinkle?|How are diamonds formed?|What is a recession?|How do earthquakes happen?
    What is the difference between speed and velocity?|How does the immune system work?|What is a haiku?
    Why is exercise good for you?|What is the function of the kidneys?|How does a bicycle stay upright?
    What is open source software?|What is the difference between HTTP and HTTPS?|How does bread rise?
    What is a leap second?|Why do we use time zones?|How do vaccines get approved?|What is the speed of light?
    How do plants drink water?|What is a volcano?|Why is biodiversity important?|How do tides work?
    What is a prime number?|What is the Pythagorean theorem?|How do you calculate a percentage?|What is pi?
    What is the difference between an acid and a base?|How does soap clean things?|What is an echo?
    Why do leaves fall?|How does a thermostat work?|What is a democracy?|How is cheese made?|What is jazz?
    Who was Cleopatra?|Who was Isaac Newton?|What did Galileo discover?|What is the Magna Carta?
    How does a vacuum cleaner work?|What is an eclipse?|Why do we get goosebumps?|How do submarines dive?
    What is the difference between a frog and a toad?|How do spiders spin webs?|What is a neural network?
    What is cloud computing?|How do traffic lights work?|What is a budget?|How does recycling work?
    What is the water cycle?|How does a toaster work?|Why do metals rust?|What are tectonic plates?"""
)

THINGS = entries(
    """a piano|a jet engine|a wind turbine|a printer|a nuclear reactor|a steam engine|a telescope|a touch screen
    a hot air balloon|a violin|a radio|a lock|a zipper|a parachute|a compass|a dishwasher|an electric motor
    a hearing aid|a smoke detector|a barcode scanner|a rocket|a dam|a sewing machine|a metal detector|a kite
    a clutch|a telephone|a transistor|a laser|a thermometer|a hybrid car|a fire extinguisher|a water filter"""
)

IDEAS = entries(
    """osmosis|recursion|inertia|compound words|democracy|natural selection|opportunity cost|irony|friction
    the scientific method|object-oriented programming|the Doppler effect|fractions|photosynthesis in algae
    supply chains|the food chain|plate tectonics|electric current|negative numbers|version control|insurance
    the placebo effect|genetic engineering|surface tension|the big bang|checks and balances|loops in programming
    a variable in programming|standard deviation|an interest rate|carbon dating|crop rotation|gross domestic product"""
)

PURPOSES = entries(
    """asking for a day off|thanking a teacher|complaining about a late delivery|inviting friends to a picnic
    canceling a subscription|asking for a refund|applying for a summer job|congratulating a colleague on a promotion
    apologizing for a missed meeting|asking a neighbor to turn down the music|recommending a former student
    introducing a new team member|reminding everyone of a deadline|declining an invitation|asking for feedback
    announcing a change of address|asking the landlord to fix the heating|thanking a customer for a review
    requesting a meeting next week|saying goodbye to coworkers|asking for directions to an event
    reporting a lost package|confirming a hotel reservation|asking for a raise|proposing a new project
    wishing a friend a happy birthday|asking a professor for more time|following up after an interview
    welcoming new members of a club|asking for volunteers|explaining a delay|ordering office supplies"""
)

PREMISES = entries(
    """a boy who finds a talking fox|a robot that learns to paint|two sisters lost in a forest|a baker who wins a contest
    an old sailor and his parrot|a girl who can hear plants|a clock that runs backward|a village without rain
    a detective who is afraid of the dark|a dragon who loves books|the last bus of the night|a broken promise
    a dog that waits at the station|a message in a bottle|a teacher on her first day|a snowstorm in July
    a painter who loses his colors|a cat that travels the world|a door in the attic|a race through the desert
    an astronaut who misses home|a forgotten birthday|a singer who lost her voice|a shy ghost|a magic pencil
    a small boat in a big storm|a king who wants to be a gardener|a mouse in a library|a stolen painting"""
)

AIMS = entries(
    """save money on groceries|learn a new language|sleep better|stay focused while studying|reduce plastic waste
    prepare for a job interview|make new friends in a new city|start running|cook for a large family
    keep houseplants alive|improve my handwriting|write a good essay|remember names|get up earlier
    train a puppy|pack for a week at the beach|organize a small kitchen|deal with a difficult coworker
    choose a laptop for school|learn to play the guitar|grow tomatoes on a balcony|plan a birthday party
    speak in front of a group|spend less time on my phone|clean a bicycle|make a study schedule
    teach a child to read|prepare for a marathon|stop biting my nails|start a book club|repair a flat tire
    write a resume|save energy at home|care for an elderly parent|make coffee without a machine"""
)

SUBJECTS = entries(
    """vegetables that grow in winter|countries in South America|planets of the solar system|primary colors
    famous painters|healthy snacks|board games for families|books for teenagers|musical instruments|sports without a ball
    things to do on a rainy day|gifts for a grandmother|breakfast ideas|names for a kitten|inventions of the 20th century
    capital cities in Europe|animals that live in Africa|rivers in Asia|programming languages|synonyms for happy
    job titles in a hospital|types of clouds|parts of a car|ingredients for a salad|questions for an interview
    renewable sources of energy|tools for a carpenter|famous bridges|ways to say thank you|habits of good students
    ideas for a school project|exercises without equipment|desserts with apples|islands in the Pacific"""
)

SENTENCES = entries(
    """The bus stops in front of the school.|I would like a cup of coffee, please.|My brother has two children.
    Where can I buy a ticket?|It is raining and I forgot my coat.|We are going to the beach tomorrow.
    The book on the table is mine.|How much does this shirt cost?|She speaks three languages.|The dog sleeps under the bed.
    Can you help me find my keys?|The restaurant closes at eleven.|I have been waiting for an hour.|He works as a nurse.
    Our flight was delayed by two hours.|The children play in the garden.|Please close the window.|I don't understand the question.
    They live in a small house near the forest.|The meeting starts at ten o'clock.|I need a doctor.|What time is it?
    My favorite color is green.|The museum is free on Sundays.|I am looking for the train station.|Good luck with your exam!
    We bought fresh bread this morning.|The cat is on the roof.|He reads the newspaper every day.|Thank you for your help.
    The soup is too hot to eat.|Winter is colder than autumn.|I will call you next week.|There is a bank around the corner.
    My parents are coming to dinner on Friday.|The teacher explained the lesson again.|Do you have a room for two nights?
    I like to walk in the mountains.|The store is closed today.|She wrote a letter to her friend.|The water is very cold.
    Happy birthday to you!|The film was better than the book.|We have to leave before sunset.|I forgot my password."""
)

ROLES = entries(
    """a tour guide in Rome|a strict piano teacher|a friendly bus driver|a medieval blacksmith|a space captain
    a grumpy librarian|a weather forecaster|a football commentator|a Victorian butler|a yoga instructor
    a lighthouse keeper|a talking tree|a bank clerk|a nutritionist|a park ranger|a fortune teller|a movie critic
    a hotel receptionist|a farmer|a time traveler from 1850|a salesperson in a phone store|a math tutor"""
)

SCENES = entries(
    """A visitor asks what to see first.|I am your new student.|Tell me about your day.|Give me one piece of advice.
    I want to complain about something.|What is your favorite memory?|I am lost and need your help.|Explain your job to me.
    Greet me and ask what I need.|Describe what you see around you.|I have ten minutes. Convince me.|Tell me a secret."""
)

FORMS: dict[str, list[str]] = {
    "written_code": [
        "Write a {code} function to {task}.", "Write a {code} function that can {task}.",
        "How can I {task} in {code}?", "How do I {task} with {code}?", "Show me {code} code to {task}.",
        "Write a short {code} program to {task}.", "I need a {code} script to {task}. Can you help?",
        "Write a {code} class for {cls}.", "Implement {cls} in {code}.", "Create {cls} as a class in {code}.",
        "Write a SQL query that {query}.", "I need a SQL statement that {query}.",
        "Write the HTML and CSS for {page}.", "How do I make {page} in HTML?",
        "Give me a {code} example that shows how to {task}, with comments.",
    ],
    "written_question": [
        "{question}", "{question}", "{question} Explain it simply.", "{question} Answer in a few sentences.",
        "Explain how {thing} works.", "How does {thing} work?", "Describe how {thing} works, step by step.",
        "What is {idea}?", "Explain {idea} with an example.", "Explain {idea} to a ten-year-old.",
        "Can you explain {idea} in simple words?", "Why is {idea} important?",
    ],
    "written_letter": [
        "Write an email {purpose}.", "Write a short email {purpose}.", "Write a letter {purpose}.",
        "Draft a polite message {purpose}.", "Please write a formal letter {purpose}.", "Help me write a note {purpose}.",
    ],
    "written_story": [
        "Write a short story about {premise}.", "Tell me a story about {premise}.", "Write a poem about {premise}.",
        "Write the first paragraph of a novel about {premise}.", "Write a bedtime story about {premise}.",
        "Invent a dialogue from a story about {premise}.",
    ],
    "written_list": [
        "List {k} {subject}.", "Name {k} {subject}.", "Give me a list of {k} {subject}.", "Can you suggest {k} {subject}?",
        "Give me {k} tips to {aim}.", "What are {k} ways to {aim}?", "Make a checklist to help me {aim}.",
        "How can I {aim}?", "What is the best way to {aim}?", "I want to {aim}. Where do I start?",
        "Write a plan for one week to {aim}.",
    ],
    "written_role": [
        "You are {character}. {scene}", "Pretend you are {character}. {scene}", "Act as {character}. {scene}",
        "Imagine that you are {character}. {scene}", "Answer as {character} would: {question}",
    ],
    "written_translation": [
        "Translate to {language}: {sentence}", "Translate into {language}: {sentence}",
        "How do you say \"{sentence}\" in {language}?", "What is \"{sentence}\" in {language}?",
        "Please translate the following sentence to {language}.\n\n{sentence}",
        "Translate this to {language}: {sentence} {sentence}",
        "Give me the {language} translation of this text: {sentence} {sentence}",
    ],
    "written_reading": [
        "Summarize this text in one sentence.\n\n{start}{gen:110}", "Give me a two-sentence summary:\n\n{start}{gen:120}",
        "What is this text about?\n\n{start}{gen:100}", "Shorten the text below.\n\n{start}{gen:110}",
        "What are the main points of this text?\n\n{start}{gen:120}",
        "Here is an email I got:\n\nHi {name},{gen:80}\n\nSummarize it for me.",
        "{start}{gen:90}\n\nWhat happened, and why?", "Text: {start}{gen:90}\n\nQuestion: Who is mentioned in the text?\nAnswer:",
        "According to the text below, where does it take place?\n\n{start}{gen:90}",
        "Text: {start}{gen:90}\n\nQuestion: What is the text about?\n\nAnswer:",
        "Read this and tell me when it happened.\n\n{start}{gen:90}",
        "Find all names and numbers in this text:\n\n{start}{gen:80}", "List the places mentioned here: {start}{gen:80}",
        "Extract the dates as a list.\n\n{start}{gen:80}", "Turn this note into a list of tasks:\n\n{start}{gen:70}",
        "Make a JSON object with the name, place and date from this text:\n\n{start}{gen:70}",
    ],
}  # fmt: skip

WORDS: dict[str, list[str]] = {
    "task": TASKS, "cls": CLASSES, "query": QUERIES, "page": PAGES, "question": QUESTIONS,
    "thing": THINGS, "idea": IDEAS, "purpose": PURPOSES, "premise": PREMISES, "aim": AIMS,
    "subject": SUBJECTS, "sentence": SENTENCES, "character": ROLES, "scene": SCENES,
}  # fmt: skip
