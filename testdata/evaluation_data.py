"""Small data sets in the formats of LoCoMo and LongMemEval, made of a seed."""

import random
from datetime import UTC, datetime, timedelta
from typing import Any

MONTHS = "January February March April May June July August September October November December".split()  # noqa: SIM905
HOBBIES = ["pottery", "archery", "beekeeping", "calligraphy", "fencing", "juggling", "origami", "yodelling"]
PLACES = ["Tromso", "Cusco", "Bergamo", "Hobart", "Ghent", "Kyoto", "Valparaiso", "Tbilisi"]
SMALL_TALK = [
    "That sounds wonderful, tell me more about it!",
    "Oh, I see. And how did your family like it?",
    "It has been quiet here, mostly work and sleep.",
    "Thanks for asking, we are all doing fine.",
]


def locomo_samples(samples: int, sessions: int = 3, *, seed: int = 1) -> list[dict[str, Any]]:
    """Return samples in LoCoMo's format. Each session has one fact and one question about it."""
    generator = random.Random(seed)
    return [_locomo_sample(number, sessions, generator) for number in range(1, samples + 1)]


def _locomo_sample(number: int, sessions: int, generator: random.Random) -> dict[str, Any]:
    speakers = [("Maria", "Evan"), ("Laura", "Tim"), ("Nora", "Sam")][number % 3]
    conversation: dict[str, Any] = {"speaker_a": speakers[0], "speaker_b": speakers[1]}
    questions: list[dict[str, Any]] = []
    day = datetime(2023, 1, 10, 13, 56, tzinfo=UTC) + timedelta(days=generator.randint(0, 30))
    for session in range(1, sessions + 1):
        hobby, place = generator.choice(HOBBIES), generator.choice(PLACES)
        texts = [
            *generator.sample(SMALL_TALK, 2),
            f"I tried {hobby} in {place} last Friday.",
            generator.choice(SMALL_TALK),
        ]
        conversation[f"session_{session}"] = [
            {"speaker": speakers[turn % 2], "dia_id": f"D{session}:{turn + 1}", "text": text}
            for turn, text in enumerate(texts)
        ]
        hour = day.hour % 12 or 12
        conversation[f"session_{session}_date_time"] = (
            f"{hour}:{day:%M} {'pm' if day.hour >= 12 else 'am'} on {day.day} {MONTHS[day.month - 1]}, {day.year}"
        )
        questions.append(
            {
                "question": f"Where did {speakers[0]} try {hobby}?",
                "answer": place,
                "evidence": [f"D{session}:3"],
                "category": 1 + session % 4,
            }
        )
        day += timedelta(days=generator.randint(5, 40))
    questions.append({"question": "Who is the king?", "evidence": [], "category": 5})
    questions.append({"question": "What is missing?", "evidence": ["D77:1"], "category": 4})
    return {"sample_id": f"conv-{number}", "conversation": conversation, "qa": questions}


def longmemeval_rows(questions: int, *, seed: int = 1) -> list[dict[str, Any]]:
    """Return questions in LongMemEval's format, each with a haystack of its own, and an abstention question."""
    generator = random.Random(seed)
    rows = [_longmemeval_row(number, generator) for number in range(1, questions + 1)]
    return [*rows, {**rows[0], "question_id": "q0_abs"}]


def _longmemeval_row(number: int, generator: random.Random) -> dict[str, Any]:
    hobby, place = generator.choice(HOBBIES), generator.choice(PLACES)
    fact = {"role": "user", "content": f"I learned {hobby} in {place}.", "has_answer": True}
    advice = {"role": "assistant", "content": "In general it is a good idea to practise regularly. " * 5}
    other = [{"role": "user", "content": generator.choice(SMALL_TALK)}, advice]
    return {
        "question_id": f"q{number}",
        "question_type": "single-session-user",
        "question": f"Where did I learn {hobby}?",
        "answer": place,
        "question_date": "2023/05/30 (Tue) 23:40",
        "haystack_session_ids": [f"noise/{number}", f"answer_{number}"],
        "haystack_dates": ["2023/05/20 (Sat) 02:21", "2023/05/21 (Sun) 10:00"],
        "haystack_sessions": [other, [fact, advice]],
        "answer_session_ids": [f"answer_{number}"],
    }
