"""The token estimate and its upper bound."""

import base64
import json
import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conversations import CONVERSATIONS
from holdfast.model.parts import ContextPart, ImagePart, TextPart, ToolPart
from holdfast.text import tokens

RANDOM = random.Random(7)
PROSE = [
    "The parser fails at 12:40 when the queue is empty, because the worker closes the connection too early.",
    "I'm trying to keep the garden easy, so I prefer plants that need little water; which ones would you choose?",
    "We restored the token refresh and deployed it. All tests pass, and the signing key will be rotated on Friday.",
]
TEXTS = {
    "prose": " ".join(PROSE * 5),
    "conversations": "\n".join(
        str(turn["content"]) for c in CONVERSATIONS[:7] for turn in c.messages if turn.get("content")
    ),
    "chinese": "\n".join(str(turn["content"]) for c in CONVERSATIONS[7:] for turn in c.messages if turn.get("content")),
    "japanese": "東京への出張を予約してください。ホテルは駅の近くで、朝食付きがいいです。予算は一泊二万円までです。"
    * 5,
    "korean": "서울로 가는 기차를 예약해 주세요. 호텔은 역 근처가 좋고 아침 식사가 포함되어야 합니다. " * 5,
    "russian": "Пожалуйста, забронируйте билет на поезд до Москвы. Гостиница должна быть рядом с вокзалом. " * 5,
    "arabic": "يرجى حجز تذكرة قطار إلى القاهرة. يجب أن يكون الفندق قريبا من المحطة مع وجبة الإفطار. " * 5,
    "german": "Bitte buchen Sie einen Zug nach München. Das Hotel soll in der Nähe des Bahnhofs sein, mit Frühstück. "
    * 5,
    "json": json.dumps([{"user_id": f"mia_li_{n}", "total": n * 17.5, "status": "delivered"} for n in range(40)]),
    "code": "\n".join(
        "    def read_all(self, limit: int = 100) -> list[Message]:\n        return self._rows[:limit]"
        for _ in range(9)
    ),
    "hex": RANDOM.randbytes(400).hex(),
    "base64": base64.b64encode(RANDOM.randbytes(600)).decode(),
    "ids": ", ".join(f"msg_{RANDOM.getrandbits(128):032x}" for _ in range(20)),
    "dates": "\n".join(f"2026-0{n % 9 + 1}-1{n % 10}T0{n % 10}:3{n % 6}:00Z" for n in range(40)),
    "log": "\n".join(
        f"10:{n}:07 INFO [worker-{n}] path=/api/v1/users/{n * 7919} status=200 took {n * 1.37:.2f} ms"
        for n in range(10, 50)
    ),
    "table": "\n".join(f"{'name' * (n % 3 + 1):<20}  {n:>8}   pure" for n in range(40)),
    "words in one": "".join(PROSE * 5).replace(" ", ""),
    "capitals": "THE WORKER CLOSES THE CONNECTION; ERROR_CONNECTION_RESET, ACGTACGGTACCA " * 5,
    "emoji": "Done 🎉🚀 thanks 🙏 ✅ great 😀👍 " * 9,
}
count_exactly = tokens.counter("o200k_base")


@pytest.mark.parametrize("name", TEXTS)
def test_the_estimate_is_close_to_the_exact_count(name: str) -> None:
    max_error = 0.1 if name in {"prose", "conversations", "chinese"} else 0.3 if name in {"table", "capitals"} else 0.2
    assert tokens.estimate(TEXTS[name]) == pytest.approx(count_exactly(TEXTS[name]), rel=max_error)


@pytest.mark.parametrize("name", TEXTS)
def test_no_text_has_more_tokens_than_its_upper_bound(name: str) -> None:
    text = TEXTS[name]
    for size in (300, 1_000, 4_000):
        for start in range(0, len(text), size):
            piece = text[start : start + size]
            assert count_exactly(piece) <= tokens.upper_bound(piece)
            assert tokens.estimate(piece) <= tokens.upper_bound(piece)
    max_ratio = 1.25 if name in {"prose", "conversations", "chinese", "json", "log"} else 3
    assert tokens.upper_bound(text) <= max_ratio * count_exactly(text)


@pytest.mark.parametrize(
    "text",
    [
        "Auta minua suunnittelemaan ensi viikon matkani Tampereelle, koska minun täytyy tavata asiakkaitamme. ",
        "Kérlek, segíts megtervezni a jövő heti debreceni utazásomat, mert találkoznom kell az ügyfeleinkkel. ",
        "Ngicela ungisize ngihlele uhambo lwami oluya eThekwini ngesonto elizayo ngoba ngidinga ukuhlangana. ",
        "Raishuu no Osaka e no ryokou no keikaku o tetsudatte kudasai. Okyakusama to awanakereba narimasen. ",
        "Tolong bantu saya merencanakan perjalanan ke Surabaya minggu depan karena saya harus bertemu. ",
        "Proszę pomóż mi zaplanować podróż do Gdańska w przyszłym tygodniu, ponieważ muszę spotkać klientów. ",
        "እባክህ በሚቀጥለው ሳምንት ወደ ሐዋሳ የማደርገውን ጉዞ ለማቀድ እርዳኝ። ",
        "ກະລຸນາຊ່ວຍຂ້ອຍວາງແຜນການເດີນທາງໄປຫຼວງພະບາງໃນອາທິດໜ້າ. ",
        "Ирэх долоо хоногт Дархан руу явах аяллаа төлөвлөхөд минь туслаач. ",
        "গত সপ্তাহে আমি ঢাকায় গিয়েছিলাম এবং সেখানে অনেক বন্ধুর সঙ্গে দেখা হয়েছে। ",
    ],
    ids=["fi", "hu", "zu", "romaji", "id", "pl", "am", "lo", "mn", "bn"],
)
def test_the_upper_bound_holds_for_languages_whose_words_tokenizers_split(text: str) -> None:
    assert count_exactly(text * 10) <= tokens.upper_bound(text * 10)


@pytest.mark.parametrize("text", ["", "a", "ok", "hello", " hello", "12", "123", "你", "🦊"])
def test_a_short_text_is_estimated_at_most_at_two_tokens(text: str) -> None:
    assert bool(text) <= tokens.estimate(text) <= 2


@given(st.text(), st.text())
def test_a_longer_text_never_has_a_lower_estimate(text: str, more: str) -> None:
    assert tokens.estimate(text) <= tokens.estimate(text + more) <= tokens.estimate(text) + tokens.estimate(more) + 8


@given(st.lists(st.text(st.characters(exclude_characters="\n\r"))))
def test_joined_lines_have_no_higher_estimate_than_single_lines(lines: list[str]) -> None:
    assert tokens.estimate("\n".join(lines)) <= sum(tokens.estimate(f"{line}\n") for line in lines)


@pytest.mark.parametrize("text", ["word " * 20_000, "中" * 100_000, "a1" * 50_000, " \n" * 50_000, "a  " * 33_000])
def test_a_large_text_is_estimated_quickly(text: str) -> None:
    started = time.process_time()
    tokens.upper_bound(text)
    assert time.process_time() - started < 0.1


def test_a_message_costs_the_tokens_of_its_texts_abstracts_and_tool_calls_but_not_of_images() -> None:
    text, context = TextPart("first words " * 10), ContextPart("viking://a", "memory", "an abstract " * 5)
    tool = ToolPart(tool_id="call", tool_name="name", tool_input={"a": 1}, tool_output="its result " * 3)
    pieces = [text.text, context.abstract, "call", "name", '{"a":1}', "its result " * 3]
    assert tokens.count_parts([text]) == tokens.estimate(text.text)
    assert tokens.count_parts([context]) == tokens.estimate(context.abstract)
    assert tokens.count_parts([ImagePart("https://a/b.png", "a long description")]) == 0
    assert tokens.count_parts([text, context, tool]) == sum(map(tokens.estimate, pieces))
